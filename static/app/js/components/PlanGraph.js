/** The plan of a run: a picture of its steps and their dependencies, and the same as a list that opens. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { html } from "../html.js";
import { plural, t } from "../i18n.js";
import { countDone, drawPlan } from "../state/plan.js";
import { LINE, PAD, shapePlan } from "../state/plan_shape.js";
import { Icon } from "./icons.js";
import { ToolLine } from "./ToolGroup.js";

/** @typedef {import("../state/plan.js").PlanStep} PlanStep */
/** @typedef {import("../state/types.js").ToolCall} ToolCall */

/** The width of the column without its padding. */
const ROOM = 730;
const EDGES = 76;

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

/**
 * Render the picture, hidden from screen readers because the list below contains the same.
 * @param {{steps: PlanStep[]}} props
 */
function Picture({ steps }) {
  const room = useSignal(roomNow());
  useEffect(() => {
    const measure = () => (room.value = roomNow());
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  }, []);
  const { width, height, boxes, edges } = shapePlan(drawPlan(steps), room.value);
  return html`<div class="plan-picture" aria-hidden="true"><svg width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`}>
    ${edges.map(({ state, path, arrow }) => html`<path class=${`plan-line is-${state}`} d=${path} /><path class=${`plan-arrow is-${state}`} d=${arrow} />`)}
    ${boxes.map(({ step, x, y, width: across, height: down, words }) => html`<g class=${`plan-node is-${step.state}`} transform=${`translate(${x} ${y})`}>
      <title>${step.title}</title>
      <rect width=${across} height=${down} rx="10" />
      ${words.map((line, at) => html`<text x=${PAD} y=${PAD + LINE * (at + 0.5)}>${line}</text>`)}
    </g>`)}
  </svg></div>`;
}

const roomNow = () => Math.min(ROOM, innerWidth - EDGES);

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
