/** What fills the context, part by part, and what would be sent to the model. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { compactNow, loadContext, previewCompaction } from "../commands/context.js";
import { exact, formatCost } from "../format.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { currentThread, ui } from "../state/store.js";
import { describeContext } from "./ContextRing.js";
import { Icon } from "./icons.js";
import { Panel } from "./Panel.js";
import { Piece } from "./Piece.js";

/** @type {[keyof import("../state/types.js").ContextUse["parts"], string][]} */
const PARTS = [
  ["system", t("System")],
  ["profile", t("Profile")],
  ["tools", t("Tools")],
  ["summary", t("Summary")],
  ["history", t("History")],
  ["recall", t("Recall")],
];

export function ContextPanel() {
  const thread = currentThread.value;
  if (ui.value.panel !== "context" || !thread) return null;
  return html`<${Panel} label=${t("Context")} title=${t("Context")}>
    ${thread.context && html`<${Parts} context=${thread.context} />`}
    <${Totals} thread=${thread} />
    <${CompactForm} key=${thread.id} thread=${thread} />
    <${ModelView} key=${thread.id} id=${thread.id} />
  <//>`;
}

/** @param {{context: import("../state/types.js").ContextUse}} props */
function Parts({ context }) {
  const free = Math.max(0, context.budget - context.used);
  const rows = [
    ...PARTS.map(([key, name]) => ({ key, name, tokens: context.parts[key] })),
    { key: "free", name: t("Free"), tokens: free },
  ];
  const whole = Math.max(
    1,
    rows.reduce((sum, row) => sum + row.tokens, 0),
  );
  return html`
    <p class="panel-note">${describeContext(context)}</p>
    <svg class="bar" width="100%" height="10" aria-hidden="true" preserveAspectRatio="none" viewBox=${`0 0 ${whole} 10`}>
      ${stack(rows).map(({ key, start, tokens }) => html`<rect class=${`part-${key}`} x=${start} y="0" width=${tokens} height="10" />`)}
    </svg>
    <dl class="parts">
      ${rows.map(
        ({ key, name, tokens }) => html`<div class="part">
        <dt><span class=${`swatch part-${key}`}></span>${name}</dt>
        <dd>${exact(tokens)}</dd>
      </div>`,
      )}
    </dl>`;
}

/** @param {{key: string, tokens: number}[]} rows */
function stack(rows) {
  let start = 0;
  return rows.map(({ key, tokens }) => ({ key, tokens, start: (start += tokens) - tokens }));
}

/** @param {{thread: import("../state/types.js").Thread}} props */
function Totals({ thread }) {
  const last = thread.ids.findLast((id) => thread.messages[id].usage);
  const usage = last ? thread.messages[last].usage : null;
  if (!usage) return null;
  const rows = [
    [t("Input"), usage.input_tokens],
    [t("of which cached"), usage.cached_tokens ?? 0],
    [t("Summarizing"), usage.compaction_tokens ?? 0],
    [t("Output"), usage.output_tokens],
  ];
  return html`<section class="panel-section">
    <h3>${t("Last answer")}</h3>
    <dl class="parts">${rows.map(([name, tokens]) => html`<div class="part"><dt>${name}</dt><dd>${exact(Number(tokens))}</dd></div>`)}
      ${usage.cost ? html`<div class="part"><dt>${t("Cost")}</dt><dd>${formatCost(usage.cost)}</dd></div>` : null}
    </dl>
  </section>`;
}

/** @param {{thread: import("../state/types.js").Thread}} props */
function CompactForm({ thread }) {
  const keep = useSignal("");
  const words = () => keep.value.trim();
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (await compactNow(thread.id, words())) keep.value = "";
  };
  return html`<form class="compact-form" onSubmit=${submit}>
    <label class="field">${t("What the summary should keep (optional)")}
      <input type="text" maxlength="10000" value=${keep.value} onInput=${(/** @type {any} */ event) => (keep.value = event.target.value)} /></label>
    <button type="submit" class="button is-wide" disabled=${Boolean(thread.run)}><${Icon} name="fold" size=${18} />${t("Compact now")}</button>
    <button type="button" class="link" onClick=${() => previewCompaction(thread.id, words())}>${t("Preview first")}</button>
  </form>`;
}

/** @param {{id: string}} props */
function ModelView({ id }) {
  const view = useSignal(/** @type {any} */ (undefined));
  const isOpen = useSignal(false);
  useEffect(() => {
    if (isOpen.value) loadContext(id).then((loaded) => (view.value = loaded));
  }, [isOpen.value, id, currentThread.value?.run?.id]);
  const onToggle = (/** @type {any} */ event) => (isOpen.value = event.target.open);
  return html`<details class="model-view" onToggle=${onToggle}>
    <summary><${Icon} name="right" size=${16} />${t("What the model sees")}</summary>
    ${isOpen.value && !view.value && html`<p class="panel-note">${view.value === null ? t("The context could not be loaded.") : t("Loading…")}</p>`}
    <ol>${(view.value?.messages ?? []).map((/** @type {any} */ piece) => html`<${Piece} piece=${piece} />`)}</ol>
    ${view.value && html`<${Policy} policy=${view.value.policy} warning=${view.value.warning} />`}
  </details>`;
}

/**
 * Render the settings in effect, and the layer that each one comes from.
 * @param {{policy: Record<string, any>, warning: string|null}} props
 */
function Policy({ policy, warning }) {
  const rows = Object.entries(policy).filter(([, { value }]) => value !== "" && value !== null);
  return html`<section class="panel-section">
    <h3>${t("Context settings")}</h3>
    ${warning && html`<p class="panel-note">${warning}</p>`}
    <dl class="parts">${rows.map(
      ([name, { value, from }]) => html`<div class="part"><dt>${name}</dt>
        <dd>${String(value)} <span class="piece-source">${from}</span></dd></div>`,
    )}</dl>
  </section>`;
}
