/** The tool calls of an answer: a line for each, which opens to show its input and output. */

import { formatSeconds, prettyJson, revealHidden } from "../format.js";
import { html } from "../html.js";
import { plural, t } from "../i18n.js";
import { ConsentCard } from "./ConsentCard.js";
import { Icon } from "./icons.js";
import { OffloadedResult } from "./OffloadedResult.js";

/** @typedef {import("../state/types.js").ToolCall} ToolCall */

const MANY = 4;
const BUSY = new Set(["requested", "running", "started"]);
const OPEN_STATES = new Set([...BUSY, "waiting"]);
/** @type {Record<string, string>} */
const OUTCOMES = {
  waiting: t("waits for your approval"),
  failed: t("failed"),
  denied: t("denied"),
  interrupted: t("interrupted: it may or may not have happened"),
};

/** @param {{tools: ToolCall[], runId: string|null}} props */
export function ToolGroup({ tools, runId }) {
  const lines = tools.map((tool) => html`<li key=${tool.callId}><${ToolLine} tool=${tool} /></li>`);
  const waiting = tools.filter((tool) => tool.state === "waiting");
  const isBusy = tools.some((tool) => OPEN_STATES.has(tool.state));
  // Each line is news while tools are running; afterwards, many lines are folded into one.
  const isFolded = tools.length > MANY && !isBusy;
  return html`
    ${
      isFolded
        ? html`<details class="fold-line tools-folded"><summary><${Icon} name="wrench" size=${16} /><span>${plural(tools.length, "{n} tool call", "{n} tool calls")}</span>${countBad(tools)}</summary>
            <ul class="tools">${lines}</ul></details>`
        : html`<ul class="tools" aria-label=${t("Tools")}>${lines}</ul>`
    }
    ${runId && waiting.map((tool) => html`<${ConsentCard} key=${tool.callId} tool=${tool} runId=${runId} />`)}`;
}

/** @param {ToolCall[]} tools */
function countBad(tools) {
  const bad = tools.filter((tool) => tool.state !== "done").length;
  return bad > 0 && html`<span class="tool-outcome">${t("{n} not done", { n: bad })}</span>`;
}

/** @param {{tool: ToolCall}} props */
export function ToolLine({ tool }) {
  const { name, state, hookId, durationMs, isInputCut, preview, isCut, offloadRef } = tool;
  const isBad = state in OUTCOMES;
  return html`<details class="fold-line tool" data-state=${state}>
    <summary>
      <${Icon} name=${iconOf(state)} size=${16} />
      <span class=${BUSY.has(state) ? "shimmer" : ""}>${name}</span>
      <span class="tool-brief">${briefOf(tool.arguments)}</span>
      ${hookId && html`<span class="tool-time">${t("by the hook {id}", { id: hookId })}</span>`}
      ${isBad && html`<span class="tool-outcome">${OUTCOMES[state]}</span>`}
      ${durationMs !== null && state === "done" && html`<span class="tool-time">${formatSeconds(durationMs)}</span>`}
    </summary>
    <div class="fold-body">
      <p class="fold-label">${t("Input")}</p><pre tabindex="0">${revealHidden(prettyJson(tool.arguments))}</pre>
      ${isInputCut && html`<p class="fold-label">${t("Only its beginning.")}</p>`}
      ${preview && html`<p class="fold-label">${t("Output")}</p><pre tabindex="0">${preview}</pre>`}
      ${offloadRef ? html`<${OffloadedResult} offloadRef=${offloadRef} />` : isCut && html`<p class="fold-label">${t("The model saw only a part of it.")}</p>`}
    </div>
  </details>`;
}

/** @param {string} state */
function iconOf(state) {
  if (state === "waiting") return "clock";
  return state in OUTCOMES ? "warning" : "wrench";
}

/** Return the values of the arguments on one line. @param {string} json */
function briefOf(json) {
  try {
    const values = Object.values(JSON.parse(json)).filter((value) => value !== null && typeof value !== "object");
    return revealHidden(values.join(", ").slice(0, 80));
  } catch {
    return "";
  }
}
