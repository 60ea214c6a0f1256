/** How full the context is, as a ring that opens the context panel. */

import { formatTokens } from "../format.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { changeUi, currentThread, ui } from "../state/store.js";

const RADIUS = 8;
const ROUND = 2 * Math.PI * RADIUS;
const AMBER = 0.75;
const RED = 0.9;

/** @param {import("../state/types.js").ContextUse} context */
export function describeContext({ used, budget, isExact }) {
  const percent = Math.round((100 * used) / Math.max(1, budget));
  const text = t("Context {used} / {budget} ({percent} %)", {
    used: formatTokens(used),
    budget: formatTokens(budget),
    percent,
  });
  return isExact ? text : `${text}, ${t("estimated")}`;
}

export const toggleContext = () => changeUi({ panel: ui.value.panel === "context" ? null : "context" });

export function ContextRing() {
  const thread = currentThread.value;
  const context = thread?.context;
  if (!thread || !context || !context.budget) return null;
  const share = Math.min(1, context.used / context.budget);
  const tone = share > RED ? "is-red" : share > AMBER ? "is-amber" : "";
  const isBusy = thread.compactions.some((compaction) => compaction.status === "running");
  const text = describeContext(context);
  return html`<button type="button" class="icon-button ring-button" title=${text} aria-expanded=${ui.value.panel === "context"}
    aria-label=${t("Open the context panel")} onClick=${toggleContext}>
    <span role="meter" aria-label=${t("Context used")} aria-valuemin="0" aria-valuemax="100"
      aria-valuenow=${Math.round(share * 100)} aria-valuetext=${text} class=${`ring ${tone} ${isBusy ? "is-busy" : ""}`}>
      <svg width="22" height="22" viewBox="0 0 22 22" aria-hidden="true">
        <circle class="ring-track" cx="11" cy="11" r=${RADIUS} />
        <circle class="ring-value" cx="11" cy="11" r=${RADIUS} stroke-dasharray=${ROUND}
          stroke-dashoffset=${ROUND * (1 - Math.max(share, 0.015))} transform="rotate(-90 11 11)" />
      </svg>
    </span>
  </button>`;
}
