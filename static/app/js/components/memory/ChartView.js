/** How much was remembered and how many tokens were used each day, as a chart and as a table. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { errorText } from "../../commands/conversations.js";
import { readStats } from "../../commands/memory.js";
import { exact, formatDay, formatTokens } from "../../format.js";
import { html } from "../../html.js";
import { t } from "../../i18n.js";
import { barsOf } from "../../state/chart.js";

/** @typedef {import("../../state/chart.js").DayBar} DayBar */

const SHOWN_DAYS = 30;
const STEP = 20;
const WIDTH = 14;
const HEIGHT = 120;

const today = () => new Date().toLocaleDateString("sv");

export function ChartView() {
  const stats = useSignal(/** @type {import("../../state/chart.js").DayStats[]|null} */ (null));
  const problem = useSignal("");
  useEffect(() => {
    readStats().then(
      (items) => (stats.value = items),
      (error) => (problem.value = errorText(error)),
    );
  }, []);
  if (problem.value) return html`<p class="card is-bad" role="alert">${problem.value}</p>`;
  if (!stats.value) return html`<div class="skeletons" role="status" aria-label=${t("Loading…")}><i></i><i></i><i></i></div>`;
  const bars = barsOf(stats.value, today(), SHOWN_DAYS);
  return html`<article>
    <header class="view-head"><h2 class="day-title">${t("The last {n} days", { n: SHOWN_DAYS })}</h2></header>
    <${Bars} title=${t("Entries")} bars=${bars} valueOf=${(/** @type {DayBar} */ bar) => bar.entries} format=${exact} />
    <${Bars} title=${t("Tokens")} bars=${bars} valueOf=${(/** @type {DayBar} */ bar) => bar.tokens} format=${formatTokens} />
    <details class="chart-table"><summary>${t("As a table")}</summary><${Table} bars=${bars} /></details>
  </article>`;
}

/**
 * @param {{title: string, bars: DayBar[], valueOf: (bar: DayBar) => number, format: (value: number) => string}} props
 */
export function Bars({ title, bars, valueOf, format }) {
  const most = Math.max(1, ...bars.map(valueOf));
  const sum = bars.reduce((total, bar) => total + valueOf(bar), 0);
  return html`<figure class="chart">
    <figcaption><strong>${title}</strong> <span class="muted">${t("{sum} in all, at most {most} a day", { sum: format(sum), most: format(Math.max(...bars.map(valueOf))) })}</span></figcaption>
    <svg viewBox=${`0 0 ${bars.length * STEP} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      ${bars.map((bar, at) => {
        const height = (valueOf(bar) / most) * (HEIGHT - 4);
        return html`<rect class="chart-bar" x=${at * STEP + (STEP - WIDTH) / 2} y=${HEIGHT - Math.max(2, height)} width=${WIDTH} height=${Math.max(2, height)} rx="2"><title>${`${formatDay(bar.day)}: ${format(valueOf(bar))}`}</title></rect>`;
      })}
    </svg>
    <div class="chart-ends" aria-hidden="true"><span>${formatDay(bars[0].day)}</span><span>${formatDay(bars[bars.length - 1].day)}</span></div>
  </figure>`;
}

/** @param {{bars: DayBar[]}} props */
function Table({ bars }) {
  const busy = bars.filter((bar) => bar.entries || bar.tokens);
  if (!busy.length) return html`<p class="muted">${t("Nothing happened on these days.")}</p>`;
  return html`<table>
    <thead><tr><th scope="col">${t("Day")}</th><th scope="col">${t("Entries")}</th><th scope="col">${t("Tokens")}</th></tr></thead>
    <tbody>${busy.map((bar) => html`<tr><th scope="row">${formatDay(bar.day)}</th><td>${exact(bar.entries)}</td><td>${exact(bar.tokens)}</td></tr>`)}</tbody>
  </table>`;
}
