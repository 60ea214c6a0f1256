/** Messages: converts the server's form into the view's, and applies deltas. Pure functions. */

import { countChars, dropChars, takeChars } from "./text.js";
import { toolOf, toolsOfParts } from "./tools.js";

/** @typedef {import("./types.js").ViewMessage} ViewMessage */
/** @typedef {{type: string, [field: string]: any}} Part */

/** @param {Record<string, any>} raw @param {ViewMessage} [known] @returns {ViewMessage} */
export function viewMessage(raw, known) {
  /** @type {Part[]} */
  const parts = typeof raw.content === "string" ? [{ type: "text", text: raw.content }] : (raw.content ?? []);
  const text = joinTexts(parts, "text", "\n");
  const reasoning = joinTexts(parts, "reasoning", "") || known?.reasoning || "";
  return {
    id: raw.id,
    role: raw.role,
    status: raw.status ?? "complete",
    position: raw.position,
    parent: raw.parent ?? null,
    siblings: raw.siblings ?? known?.siblings ?? [],
    model: raw.model ?? known?.model ?? null,
    usage: raw.usage ?? known?.usage ?? null,
    createdAt: raw.created_at,
    text,
    chars: countChars(text),
    hasGap: false,
    reasoning,
    reasoningChars: countChars(reasoning),
    thinkingSince: known?.thinkingSince ?? null,
    thoughtForS: known?.thoughtForS ?? null,
    images: /** @type {any[]} */ (parts.filter((part) => part.type === "image")),
    files: /** @type {any[]} */ (parts.filter((part) => part.type === "file")),
    tools: raw.tools?.map(toolOf) ?? toolsOfParts(parts, known),
    isInjected: raw.kind === "injected",
    isEdited: raw.kind === "edited",
    isPinned: raw.pinned ?? false,
    recalled: raw.recalled ?? known?.recalled ?? [],
    recalledCount: raw.recalled_count ?? raw.recalled?.length ?? known?.recalledCount ?? 0,
    isForgotten: raw.forgotten ?? false,
    forgetProposal: raw.forget_proposal ?? known?.forgetProposal ?? null,
    plan: raw.run?.plan ?? known?.plan ?? [],
    notices: raw.notices ?? known?.notices ?? [],
    notes: raw.remembered?.map(noteOf) ?? known?.notes ?? [],
    run: raw.run ?? known?.run ?? null,
  };
}

/**
 * @param {Record<string, any>} told by an event, or with a loaded message @returns {import("./types.js").MemoryNote}
 */
export const noteOf = ({ entry_id: entryId, day, preview, type }) => ({
  entryId,
  day,
  preview,
  isProposed: type === "memory.proposed",
});

/** @param {Part[]} parts @param {string} type @param {string} glue */
function joinTexts(parts, type, glue) {
  return parts
    .filter((part) => part.type === type)
    .map((part) => part.text)
    .join(glue);
}

/** Return the answer of a run that has just begun, before anything about it is known. @returns {ViewMessage} */
export function emptyAnswer(/** @type {Record<string, any>} */ started, /** @type {number} */ position) {
  return viewMessage({
    id: started.message_id,
    role: "assistant",
    status: "streaming",
    position,
    parent: started.parent,
    model: started.model,
    content: "",
    created_at: started.at,
    run: { id: started.run_id, status: "running", mode: started.mode },
  });
}

/**
 * Append a delta, which begins at `offset`. Skip text that is already known. If text before it is missing, append
 * nothing and set `hasGap`.
 * @param {ViewMessage} message @param {{offset: number, text: string, at?: string}} delta @returns {ViewMessage}
 */
export function appendText(message, delta) {
  if (message.status !== "streaming") return message;
  if (delta.offset > message.chars) return message.hasGap ? message : { ...message, hasGap: true };
  const news = dropChars(delta.text, message.chars - delta.offset);
  if (!news) return message;
  const grown = { ...message, text: message.text + news, chars: message.chars + countChars(news) };
  return endThinking(grown, delta.at);
}

/** @param {ViewMessage} message @param {{offset: number, text: string, at?: string}} delta @returns {ViewMessage} */
export function appendReasoning(message, delta) {
  if (message.status !== "streaming") return message;
  const end = delta.offset + countChars(delta.text);
  if (delta.offset === 0 && end >= message.reasoningChars)
    return { ...message, reasoning: delta.text, reasoningChars: end, thinkingSince: message.thinkingSince ?? delta.at ?? null };
  if (end <= message.reasoningChars) return message;
  // Reasoning cannot be requested again, but the completed message contains all of it.
  const hole = delta.offset > message.reasoningChars ? "…" : "";
  const news = dropChars(delta.text, Math.max(0, message.reasoningChars - delta.offset));
  return {
    ...message,
    reasoning: message.reasoning + hole + news,
    reasoningChars: end,
    thinkingSince: message.thinkingSince ?? delta.at ?? null,
  };
}

/**
 * Replace the text from `offset` on by the snapshot, which reaches its current end.
 * @param {ViewMessage} message @param {{offset: number, text: string, at?: string}} snapshot @returns {ViewMessage}
 */
export function applySnapshot(message, snapshot) {
  if (message.status !== "streaming") return message;
  const end = snapshot.offset + countChars(snapshot.text);
  const isUsable = snapshot.offset <= message.chars && end >= message.chars;
  if (!isUsable) return { ...message, hasGap: false };
  const text = takeChars(message.text, snapshot.offset) + snapshot.text;
  return { ...message, text, chars: end, hasGap: false };
}

/** @param {ViewMessage} message @param {string} [at] @returns {ViewMessage} */
function endThinking(message, at) {
  if (!message.thinkingSince || message.thoughtForS !== null || !at) return message;
  const seconds = (Date.parse(at) - Date.parse(message.thinkingSince)) / 1000;
  return { ...message, thoughtForS: Math.max(1, Math.round(seconds)) };
}
