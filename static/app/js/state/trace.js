/**
 * The trace of a run as a waterfall: the purpose, start and duration of each model call and tool call. Pure functions.
 */

import { t } from "../i18n.js";

/** @typedef {import("../commands/runs.js").Trace} Trace */
/**
 * @typedef {{key: string, kind: "step"|"tool", label: string, detail: string, startMs: number, durationMs: number,
 *   firstMs: number|null, state: string, usage: import("../commands/runs.js").StepUsage|null}} Row
 */

/** @param {Trace} trace @returns {{rows: Row[], totalMs: number}} */
export function drawTrace({ iterations, hooks }) {
  const ofHooks = hooks.flatMap((hook) => hook.tool ?? []);
  const begin = Math.min(
    ...ofHooks.map((call) => Date.parse(call.requested_at)),
    ...iterations.map((step) => Date.parse(step.started_at)),
  );
  const rows = [
    ...iterations.flatMap((step) => [stepRow(step, begin), ...step.tools.map((call) => toolRow(call, begin, step.title ?? ""))]),
    ...ofHooks.map((call) => toolRow(call, begin, call.hook_id ?? "")),
  ].toSorted((a, b) => a.startMs - b.startMs);
  const totalMs = Math.max(1, ...rows.map((row) => row.startMs + row.durationMs));
  return { rows, totalMs };
}

/** @type {Record<string, string>} */
const PURPOSES = { chat: t("Answer"), compaction: t("Summary"), plan: t("Plan") };

/** @type {Record<string, string>} */
const STATES = {
  pending: t("waiting"),
  requested: t("running"),
  running: t("running"),
  waiting: t("waiting"),
  done: t("done"),
  failed: t("failed"),
  denied: t("denied"),
  interrupted: t("interrupted"),
};

/** @param {string} state of a step, a tool call or other work */
export const stateName = (state) => STATES[state] ?? state;

/**
 * Return what a model call was for.
 * @param {Pick<import("../commands/runs.js").Iteration, "purpose"|"plan_step"|"title"|"round">} step
 */
export function nameCall({ purpose, plan_step: caller, title, round }) {
  const isNew = round !== null && round > 1;
  if (caller === "planner") return isNew ? t("New plan, round {n}", { n: round }) : t("Plan");
  if (caller === "analyst") return isNew ? t("Analysis, round {n}", { n: round }) : t("Analysis");
  return title || caller || (PURPOSES[purpose] ?? purpose);
}

/** @param {import("../commands/runs.js").Iteration} step @param {number} begin @returns {Row} */
const stepRow = (step, begin) => ({
  key: `step-${step.n}`,
  kind: "step",
  label: nameCall(step),
  detail: step.model,
  startMs: Date.parse(step.started_at) - begin,
  durationMs: step.duration_ms,
  firstMs: step.first_token_ms,
  state: "done",
  usage: step.usage,
});

/**
 * Return the row of a tool call. For a denied call, the duration is the time it waited.
 * @param {import("../commands/runs.js").TracedCall} call @param {number} begin @param {string} caller @returns {Row}
 */
function toolRow(call, begin, caller) {
  const started = Date.parse(call.started_at ?? call.requested_at);
  const waited = call.finished_at ? Date.parse(call.finished_at) - started : 0;
  return {
    key: `tool-${call.call_id}`,
    kind: "tool",
    label: call.name,
    detail: caller,
    startMs: Math.max(0, started - begin),
    durationMs: call.duration_ms ?? Math.max(0, waited),
    firstMs: null,
    state: call.state,
    usage: null,
  };
}
