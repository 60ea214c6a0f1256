/** The plan of a run: a picture of its steps and what they wait for, and the same as a list that opens. */

import { html } from "../html.js";
import { plural, t } from "../i18n.js";
import { countDone, drawPlan } from "../state/plan.js";
import { Icon } from "./icons.js";
import { ToolLine } from "./ToolGroup.js";

/** @typedef {import("../state/plan.js").PlanStep} PlanStep */
/** @typedef {import("../state/plan.js").Placed} Placed */
/** @typedef {import("../state/types.js").ToolCall} ToolCall */

const WIDTH = 168;
const HEIGHT = 40;
const ACROSS = 44;
const DOWN = 12;
const MARGIN = 2;
const TITLE_CHARS = 20;

/** @type {Record<string, string>} */
const STATES = { pending: t("waiting"), running: t("running"), done: t("done"), failed: t("failed"), skipped: t("skipped") };
/** @type {Record<string, string>} */
const MARKS = { pending: "clock", running: "spark", done: "check", failed: "warning", skipped: "close" };

/** @param {{steps: PlanStep[], tools: ToolCall[]}} props */
export function PlanGraph({ steps, tools }) {
  const isBusy = steps.some((step) => step.state === "running" || step.state === "pending");
  const rounds = Math.max(1, ...steps.map((step) => step.round));
  const summary = t("Plan: {done} of {n} steps done", { done: countDone(steps), n: steps.length });
  return html`<section class="plan" aria-label=${t("Plan")} aria-busy=${isBusy}>
    <p class="plan-head" role="status"><${Icon} name="plan" size=${16} /><span>${summary}</span>
      ${rounds > 1 && html`<span class="badge is-quiet">${plural(rounds, "planned {n} time", "planned {n} times")}</span>`}</p>
    <${Picture} steps=${steps} />
    <ol class="plan-steps">${steps.map((step) => html`<${Step} key=${step.id} step=${step} steps=${steps} tools=${tools.filter((tool) => tool.planStep === step.id)} />`)}</ol>
  </section>`;
}

/** The list below says the same in words. @param {{steps: PlanStep[]}} props */
function Picture({ steps }) {
  const { placed, lines, layers, rows } = drawPlan(steps);
  const width = layers * (WIDTH + ACROSS) - ACROSS + 2 * MARGIN;
  const height = rows * (HEIGHT + DOWN) - DOWN + 2 * MARGIN;
  return html`<div class="plan-picture" aria-hidden="true"><svg width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`}>
    ${lines.map(({ from, to }) => html`<path class=${`plan-line is-${from.step.state}`} d=${curve(from, to)} />`)}
    ${placed.map(({ step, layer, row }) => html`<g class=${`plan-node is-${step.state}`} transform=${`translate(${leftOf(layer)} ${topOf(row)})`}>
      <rect width=${WIDTH} height=${HEIGHT} rx="10" />
      <text x="12" y=${HEIGHT / 2}>${shorten(step.title)}</text>
    </g>`)}
  </svg></div>`;
}

const leftOf = (/** @type {number} */ layer) => MARGIN + layer * (WIDTH + ACROSS);
const topOf = (/** @type {number} */ row) => MARGIN + row * (HEIGHT + DOWN);
const shorten = (/** @type {string} */ title) =>
  title.length > TITLE_CHARS ? `${title.slice(0, TITLE_CHARS - 1)}…` : title;

/** From the right side of one to the left side of the other. @param {Placed} from @param {Placed} to */
function curve(from, to) {
  const [x1, y1] = [leftOf(from.layer) + WIDTH, topOf(from.row) + HEIGHT / 2];
  const [x2, y2] = [leftOf(to.layer), topOf(to.row) + HEIGHT / 2];
  const half = (x2 - x1) / 2;
  return `M${x1} ${y1}C${x1 + half} ${y1} ${x2 - half} ${y2} ${x2} ${y2}`;
}

/** @param {{step: PlanStep, steps: PlanStep[], tools: ToolCall[]}} props */
function Step({ step, steps, tools }) {
  const needed = step.dependencies.map((id) => steps.find((one) => one.id === id)?.title ?? id);
  return html`<li><details class=${`fold-line plan-step is-${step.state}`}>
    <summary><${Icon} name=${MARKS[step.state] ?? "clock"} size=${16} />
      <span class=${step.state === "running" ? "shimmer" : ""}>${step.title}</span>
      <span class="plan-state">${STATES[step.state] ?? step.state}${step.attempts > 1 ? ` · ${plural(step.attempts, "{n} attempt", "{n} attempts")}` : ""}${tools.length > 0 ? ` · ${plural(tools.length, "{n} tool call", "{n} tool calls")}` : ""}</span></summary>
    <div class="fold-body">
      ${step.task && step.task !== step.title && html`<p>${step.task}</p>`}
      ${needed.length > 0 && html`<p class="fold-label">${t("After")}</p><p>${needed.join(", ")}</p>`}
      ${tools.length > 0 && html`<p class="fold-label">${t("Tools")}</p><ul class="tools">${tools.map((tool) => html`<li key=${tool.callId}><${ToolLine} tool=${tool} /></li>`)}</ul>`}
      ${step.result && html`<p class="fold-label">${step.state === "failed" ? t("Why it failed") : t("Result")}</p><pre tabindex="0">${step.result}</pre>`}
    </div>
  </details></li>`;
}
