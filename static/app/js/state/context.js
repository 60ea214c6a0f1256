/** A conversation's context as events describe it: its compactions, and how full it is. Pure functions. */

/** @typedef {import("./types.js").Compaction} Compaction */
/** @typedef {import("./types.js").AppEvent} AppEvent */

const COMPACTION_STATUS = /** @type {Record<string, string>} */ ({
  started: "running",
  done: "done",
  failed: "failed",
});

/** @param {Compaction[]} compactions @param {AppEvent} event */
export function upsertCompaction(compactions, event) {
  const known = compactions.find((compaction) => compaction.id === event.compaction_id);
  const status = COMPACTION_STATUS[event.state] ?? event.state;
  /** @type {Compaction} */
  const compaction = {
    id: event.compaction_id,
    status,
    strategy: event.strategy,
    // Events do not contain the summary. A summary from before the status changed is stale.
    summary: known?.status === status ? known.summary : null,
    message_count: event.message_count,
    first_position: known?.first_position ?? null,
    last_position: event.last_position,
    tokens_before: event.tokens_before,
    tokens_after: event.tokens_after,
    is_extract: event.is_extract ?? false,
  };
  return known ? compactions.map((one) => (one === known ? compaction : one)) : [...compactions, compaction];
}

/** @param {Record<string, any>} event @returns {import("./types.js").ContextUse} */
export function contextUse(event) {
  const { question = 0, ...given } = event.parts ?? {};
  const parts = { system: 0, profile: 0, tools: 0, summary: 0, history: 0, recall: 0, ...given };
  const used = event.used_tokens ?? event.total_tokens ?? 0;
  const withQuestion = { ...parts, history: parts.history + question };
  const budget = event.limit_tokens || event.budget_tokens || 0;
  return { used, budget, parts: withQuestion, isExact: Boolean(event.exact), waiting: waitingSpan(event) };
}

/**
 * Return a divider for messages that left the context before their summary was written, or null.
 * @param {Record<string, any>} event @returns {Compaction|null}
 */
function waitingSpan({ left_out: count, left_out_last_position: last, left_out_extract: hasExtract }) {
  if (!count || last === null || last === undefined) return null;
  return {
    id: "waiting",
    status: "waiting",
    strategy: hasExtract ? "waiting" : "truncate",
    summary: null,
    message_count: count,
    first_position: null,
    last_position: last,
    tokens_before: 0,
    tokens_after: 0,
    is_extract: false,
  };
}

/**
 * Return the dividers of a thread: its compactions, and the messages that wait for a summary.
 * @param {import("./types.js").Thread} thread @returns {Compaction[]}
 */
export function dividersOf({ compactions, context }) {
  const shown = compactions.filter(({ status }) => status === "done" || status === "running");
  const waiting = context?.waiting;
  const isCovered = !waiting || shown.some((one) => one.last_position >= waiting.last_position);
  return isCovered ? shown : [...shown, waiting];
}
