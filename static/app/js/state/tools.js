/** The tool calls of an answer: from the server's shape to what is shown. Pure. */

/** @typedef {import("./types.js").ToolCall} ToolCall */
/** @typedef {import("./types.js").ViewMessage} ViewMessage */
/** @typedef {{[field: string]: any}} Raw */

/** @param {Raw} raw of an event, or beside a loaded message @returns {ToolCall} */
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

/** What is known already keeps its moment. @param {ViewMessage} message @param {Raw} event @returns {ViewMessage} */
export function upsertTool(message, event) {
  const known = message.tools.find((tool) => tool.callId === event.call_id);
  const told = toolOf(event);
  if (!known) return { ...message, tools: [...message.tools, told] };
  const tool = { ...told, askedAt: known.askedAt, durationMs: told.durationMs ?? durationOf(known, event) };
  return { ...message, tools: message.tools.map((one) => (one === known ? tool : one)) };
}

const OVER = new Set(["done", "failed"]);

/** Since it was asked for, where the event itself does not say. @param {ToolCall} known @param {Raw} event */
function durationOf(known, event) {
  if (!OVER.has(event.state) || !known.askedAt || !event.at) return known.durationMs;
  return Math.max(0, Date.parse(event.at) - Date.parse(known.askedAt));
}

/** From the parts of a message that holds its calls itself. @param {Raw[]} parts @param {ViewMessage} [known] @returns {ToolCall[]} */
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

/** A message that only carries calls or a result; it is shown as part of its answer. @param {Raw} raw */
export function belongsToAnswer(raw) {
  if (raw.role === "tool") return true;
  const { content } = raw;
  const isCallsOnly = Array.isArray(content) && content.length > 0 && content.every((part) => part.type === "tool_call");
  return raw.role === "assistant" && isCallsOnly;
}

/**
 * Of a plan's tool calls, those that stand with the whole answer: the others are shown with the step that made them,
 * unless they wait for an approval.
 * @param {ToolCall[]} tools @param {import("./plan.js").PlanStep[]} steps
 */
export function toolsOfAnswer(tools, steps) {
  const ids = new Set(steps.map((step) => step.id));
  return tools.filter(({ planStep, state }) => state === "waiting" || planStep === null || !ids.has(planStep));
}
