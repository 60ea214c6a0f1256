/** The tool calls of an answer: converts the server's form into the view's. Pure functions. */

/** @typedef {import("./types.js").ToolCall} ToolCall */
/** @typedef {import("./types.js").ViewMessage} ViewMessage */
/** @typedef {{[field: string]: any}} Raw */

/** @param {Raw} raw from an event, or of a loaded message @returns {ToolCall} */
export const toolOf = (raw) => ({
  callId: raw.call_id,
  name: raw.name,
  state: raw.state,
  step: raw.step ?? 0,
  planStep: raw.plan_step ?? null,
  hookId: raw.hook_id ?? null,
  arguments: raw.arguments ?? "",
  isInputCut: raw.arguments_cut ?? false,
  preview: raw.preview ?? "",
  isCut: raw.truncated ?? false,
  offloadRef: raw.offload_ref ?? null,
  askedAt: raw.requested_at ?? raw.at ?? null,
  durationMs: raw.duration_ms ?? null,
});

/**
 * Add or update a tool call. A known call keeps the time at which it was requested.
 * @param {ViewMessage} message @param {Raw} event @returns {ViewMessage}
 */
export function upsertTool(message, event) {
  const known = message.tools.find((tool) => tool.callId === event.call_id);
  const told = toolOf(event);
  if (!known) return { ...message, tools: [...message.tools, told] };
  const tool = { ...told, askedAt: known.askedAt, durationMs: told.durationMs ?? durationOf(known, event) };
  return { ...message, tools: message.tools.map((one) => (one === known ? tool : one)) };
}

const OVER = new Set(["done", "failed"]);

/**
 * Return the time since the request, for an event that does not contain a duration.
 * @param {ToolCall} known @param {Raw} event
 */
function durationOf(known, event) {
  if (!OVER.has(event.state) || !known.askedAt || !event.at) return known.durationMs;
  return Math.max(0, Date.parse(event.at) - Date.parse(known.askedAt));
}

/**
 * Return the tool calls of a message that contains them as parts.
 * @param {Raw[]} parts @param {ViewMessage} [known] @returns {ToolCall[]}
 */
export function toolsOfParts(parts, known) {
  const calls = parts.filter((part) => part.type === "tool_call");
  if (!calls.length) return known?.tools ?? [];
  const results = new Map(parts.filter((part) => part.type === "tool_result").map((part) => [part.call_id, part]));
  return calls.map((call) => {
    const result = results.get(call.call_id);
    const live = known?.tools.find((tool) => tool.callId === call.call_id);
    const state = result ? (result.is_error ? "failed" : "done") : (live?.state ?? "done");
    return { ...(live ?? toolOf(call)), state, arguments: call.arguments ?? "", isInputCut: false, preview: result?.text ?? live?.preview ?? "" };
  });
}

/**
 * Return whether a message only carries calls or a result, so that it is shown as part of its answer.
 * @param {Raw} raw
 */
export function belongsToAnswer(raw) {
  if (raw.role === "tool") return true;
  const { content } = raw;
  const isCallsOnly = Array.isArray(content) && content.length > 0 && content.every((part) => part.type === "tool_call");
  return raw.role === "assistant" && isCallsOnly;
}

/**
 * Return the tool calls of a plan that are shown with the whole answer. The others are shown with the step that made
 * them, unless they wait for approval.
 * @param {ToolCall[]} tools @param {import("./plan.js").PlanStep[]} steps
 */
export function toolsOfAnswer(tools, steps) {
  const ids = new Set(steps.map((step) => step.id));
  return tools.filter(({ planStep, state }) => state === "waiting" || planStep === null || !ids.has(planStep));
}
