/** Tokens and cost of the user's model calls in the last 30 days, by day. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get } from "../api.js";
import { errorText } from "../commands/conversations.js";
import { Bars } from "../components/memory/ChartView.js";
import { exact, formatCost, formatDay, formatTokens } from "../format.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { barsOf } from "../state/chart.js";

/** @typedef {{key: string, calls: number, input_tokens: number, output_tokens: number, cost: number|null}} UsageRow */
/** @typedef {{items: UsageRow[], total: UsageRow, to: string}} Report */

const SHOWN_DAYS = 30;

export function OwnUsage() {
  const report = useSignal(/** @type {Report|null} */ (null));
  const problem = useSignal("");
  useEffect(() => {
    get("/usage?group_by=day").then(
      (read) => (report.value = read),
      (error) => (problem.value = errorText(error)),
    );
  }, []);
  return html`<section class="setting is-stacked">
    <div><h3>${t("Usage")}</h3><p>${t("Usage of the models in your chats.")}</p></div>
    ${problem.value && html`<p class="form-error" role="alert">${problem.value}</p>`}
    ${report.value && html`<${Chart} report=${report.value} />`}
  </section>`;
}

/** @param {{report: Report}} props */
function Chart({ report: { items, total, to } }) {
  const days = items.map((row) => ({ ...row, day: row.key, entry_count: row.calls }));
  const bars = barsOf(days, to, SHOWN_DAYS);
  return html`<${Bars} title=${t("Tokens")} bars=${bars} valueOf=${(/** @type {import("../state/chart.js").DayBar} */ bar) => bar.tokens} format=${formatTokens} />
    <dl class="parts">
      <div class="part"><dt>${t("Model calls")}</dt><dd>${exact(total.calls)}</dd></div>
      <div class="part"><dt>${t("Input")}</dt><dd>${exact(total.input_tokens)}</dd></div>
      <div class="part"><dt>${t("Output")}</dt><dd>${exact(total.output_tokens)}</dd></div>
      ${total.cost !== null && html`<div class="part"><dt>${t("Cost")}</dt><dd>${formatCost(total.cost)}</dd></div>`}
    </dl>
    ${
      items.length > 0 &&
      html`<details class="chart-table"><summary>${t("As a table")}</summary><table>
      <thead><tr><th scope="col">${t("Day")}</th><th scope="col">${t("Input")}</th><th scope="col">${t("Output")}</th></tr></thead>
      <tbody>${items.map((row) => html`<tr><th scope="row">${formatDay(row.key)}</th><td>${exact(row.input_tokens)}</td><td>${exact(row.output_tokens)}</td></tr>`)}</tbody>
    </table></details>`
    }`;
}
