/** What events tell of a conversation's context: its compactions, and how full it is. Pure. */

/** @typedef {import("./types.js").Compaction} Compaction */
/** @typedef {import("./types.js").Happening} Happening */

const COMPACTION_STATUS = /** @type {Record<string, string>} */ ({
  started: "running",
  done: "done",
  failed: "failed",
});

/** @param {Compaction[]} compactions @param {Happening} event */
export function upsertCompaction(compactions, event) {
  const known = compactions.find((compaction) => compaction.id === event.compaction_id);
  const status = COMPACTION_STATUS[event.state] ?? event.state;
  /** @type {Compaction} */
  const compaction = {
    id: event.compaction_id,
    status,
    strategy: event.strategy,
    // The event does not bring it; what was known before it was done is not it.
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
  return { used, budget: event.limit_tokens || event.budget_tokens || 0, parts: withQuestion, isExact: Boolean(event.exact) };
}
