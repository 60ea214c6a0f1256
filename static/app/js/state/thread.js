/** One open conversation, and how events change it. Pure functions. */

import { contextUse, upsertCompaction } from "./context.js";
import { appendReasoning, appendText, applySnapshot, emptyAnswer, noteOf, viewMessage } from "./messages.js";
import { isAtNewest, withRun } from "./pages.js";
import { endSteps } from "./plan.js";
import { belongsToAnswer, upsertTool } from "./tools.js";

/** @typedef {import("./types.js").Thread} Thread */
/** @typedef {import("./types.js").AppEvent} AppEvent */
/** @typedef {import("./types.js").ViewMessage} ViewMessage */

/** @param {string} id @returns {Thread} */
export function emptyThread(id) {
  return {
    id,
    status: "loading",
    error: "",
    lastSeq: 0,
    branch: null,
    needsReplay: false,
    isStale: false,
    ids: [],
    messages: {},
    olderCursor: null,
    newerCursor: null,
    isLoadingOlder: false,
    isLoadingNewer: false,
    scrollTarget: null,
    run: null,
    liveAnswer: null,
    compactions: [],
    context: null,
    pending: [],
  };
}

const UNCOUNTED = new Set(["text.delta", "reasoning.delta", "message.snapshot", "conversation.deleted"]);

/**
 * Apply an event. Numbered events apply once and in order; after a gap, none applies until the replay has filled it. An
 * event without a number is for the sidebar, and comes again with its number.
 * @param {Thread} thread @param {AppEvent} event @returns {Thread}
 */
export function applyEvent(thread, event) {
  if (event.seq === undefined || event.seq === null) {
    return UNCOUNTED.has(event.type) ? applyFact(thread, event) : thread;
  }
  if (event.seq <= thread.lastSeq) return thread;
  if (event.seq > thread.lastSeq + 1) return { ...thread, needsReplay: true };
  return applyFact({ ...thread, lastSeq: event.seq, needsReplay: false }, event);
}

/** @param {Thread} thread @param {AppEvent} event @returns {Thread} */
function applyFact(thread, event) {
  switch (event.type) {
    case "message.created":
      return belongsToAnswer(event.message)
        ? thread
        : settlePending(placeMessage(thread, event.message), event.message);
    case "run.started":
      return startRun(thread, event);
    case "text.delta":
      return changeMessage(thread, event.message_id, (message) => appendText(message, /** @type {any} */ (event)));
    case "reasoning.delta":
      return changeMessage(thread, event.message_id, (message) => appendReasoning(message, /** @type {any} */ (event)));
    case "message.snapshot":
      return changeMessage(thread, event.message_id, (message) => applySnapshot(message, /** @type {any} */ (event)));
    case "message.completed":
      return placeMessage(thread, event.message);
    case "message.moved":
      return moveMessages(thread, event);
    case "message.pinned":
      return changeMessage(thread, event.message.id, (message) => ({ ...message, isPinned: event.message.pinned }));
    case "message.edited":
      return changeMessage(thread, event.message.id, (message) => viewMessage(event.message, message));
    case "message.forgotten":
      return forgetMessage(thread, event.message);
    case "memory.forget_proposed":
      return changeMessage(thread, event.message_id, (message) => ({ ...message, forgetProposal: event.proposal_id }));
    case "run.finished":
      return finishRun(thread, event);
    case "compact":
      return { ...thread, compactions: upsertCompaction(thread.compactions, event) };
    case "context":
      return { ...thread, context: contextUse(event) };
    case "recall":
      return changeAnswer(thread, event, (message) => ({
        ...message,
        recalled: event.items,
        recalledCount: event.total_count || event.items.length,
      }));
    case "tool":
      return changeAnswer(thread, event, (message) => upsertTool(message, event));
    case "conversation.updated":
      return noteConversation(thread, event.conversation);
    case "memory.written":
    case "memory.proposed":
      return addNote(thread, event);
    case "plan":
      return changeAnswer(thread, event, (message) => ({ ...message, plan: event.steps }));
    case "run.notice":
      return addNotice(thread, event, event.kind);
    case "hook":
      return addNotice(thread, event, "hook");
    case "conversation.deleted":
      return { ...emptyThread(thread.id), status: "missing" };
    case "conversation.attention": // only for the list
    case "usage": // run.finished contains the totals
      return thread;
    default:
      return thread;
  }
}

/** Mark the thread as stale if the conversation shows another branch now, whose messages only the server knows. */
function noteConversation(/** @type {Thread} */ thread, /** @type {Record<string, any>} */ conversation) {
  const isStale = thread.isStale || (thread.branch ?? conversation.branch) !== conversation.branch;
  return { ...withRun(thread, conversation.active_run ?? null), isStale };
}

function placeMessage(/** @type {Thread} */ thread, /** @type {Record<string, any>} */ raw) {
  const known = thread.messages[raw.id];
  const message = viewMessage(raw, known);
  if (!known) return placeNew(thread, message);
  return { ...thread, messages: { ...thread.messages, [message.id]: message } };
}

/**
 * Place a new message after its parent. Messages that followed the parent belong to another branch. If the newest
 * messages are not loaded, leave it out: it will be loaded with them.
 */
function placeNew(/** @type {Thread} */ thread, /** @type {ViewMessage} */ message) {
  if (!isAtNewest(thread)) return thread;
  const messages = { ...thread.messages, [message.id]: message };
  // A message that was sent into an answer may arrive before the answer begins. It stays after the answer.
  const isBehind = (/** @type {string} */ id) => messages[id].isInjected && messages[id].parent === message.id;
  const before = branchBefore(thread, message).filter((id) => !isBehind(id));
  return { ...thread, messages, ids: [...before, message.id, ...thread.ids.filter(isBehind)] };
}

function branchBefore(/** @type {Thread} */ thread, /** @type {ViewMessage} */ message) {
  // The message was sent while its parent was being written, so it begins no branch.
  if (message.isInjected) return thread.ids;
  if (!message.parent && message.role === "user") return [];
  const at = message.parent ? thread.ids.indexOf(message.parent) : -1;
  return at < 0 ? thread.ids : thread.ids.slice(0, at + 1);
}

function startRun(/** @type {Thread} */ thread, /** @type {AppEvent} */ event) {
  const known = thread.messages[event.message_id];
  if (known && known.status !== "streaming") return thread;
  const run = { id: event.run_id, message_id: event.message_id };
  if (!known) return withRun(placeAnswer(thread, event), run);
  const started = { ...known, model: event.model, run: { id: event.run_id, status: "running", mode: event.mode } };
  return withRun({ ...thread, messages: { ...thread.messages, [known.id]: started } }, run);
}

function placeAnswer(/** @type {Thread} */ thread, /** @type {AppEvent} */ event) {
  const last = thread.messages[thread.ids[thread.ids.length - 1]];
  return placeNew(thread, emptyAnswer(event, last ? last.position + 1 : 0));
}

function finishRun(/** @type {Thread} */ thread, /** @type {AppEvent} */ event) {
  const messageId = thread.run?.id === event.run_id ? thread.run?.message_id : answerOf(thread, event.run_id);
  const run = thread.run?.id === event.run_id ? null : thread.run;
  const finished = changeMessage({ ...thread, run }, messageId, (message) => ({
    ...message,
    // A run whose answer ended at a limit is complete, and its error names the limit.
    status: event.status === "complete" && event.error ? "cut" : event.status,
    hasGap: false,
    usage: event.usage ?? message.usage,
    plan: endSteps(message.plan),
    run: { id: event.run_id, status: event.status, error: event.error ?? null, mode: message.run?.mode },
  }));
  return finished;
}

function answerOf(/** @type {Thread} */ thread, /** @type {string} */ runId) {
  return thread.ids.find((id) => thread.messages[id].run?.id === runId);
}

/**
 * @param {Thread} thread @param {string|undefined} id @param {(message: ViewMessage) => ViewMessage} change
 * @returns {Thread}
 */
export function changeMessage(thread, id, change) {
  const message = id === undefined ? undefined : thread.messages[id];
  if (!message) return thread;
  const changed = change(message);
  if (changed === message) return thread;
  return { ...thread, messages: { ...thread.messages, [message.id]: changed } };
}

/** @param {Thread} thread @param {AppEvent} event @param {(message: ViewMessage) => ViewMessage} change */
function changeAnswer(thread, event, change) {
  return changeMessage(thread, answerOfEvent(thread, event), change);
}

/**
 * Return the answer that an event belongs to. Events at the end of a turn name no run, and belong to the newest answer.
 */
function answerOfEvent(/** @type {Thread} */ thread, /** @type {AppEvent} */ event) {
  if (!event.run_id) return newestId(thread, (message) => message.role === "assistant");
  return thread.run?.id === event.run_id ? thread.run?.message_id : answerOf(thread, event.run_id);
}

/** Add a note below the newest message, where the reader is. A replayed entry without a text has been removed since. */
function addNote(/** @type {Thread} */ thread, /** @type {AppEvent} */ event) {
  if (!event.preview) return dropNote(thread, event.entry_id);
  const note = noteOf(event);
  const holder = thread.ids.find((id) => thread.messages[id].notes.some((one) => one.entryId === note.entryId));
  if (holder === undefined)
    return changeMessage(thread, newestId(thread), (message) => ({ ...message, notes: [...message.notes, note] }));
  // A proposed entry is remembered now.
  return changeMessage(thread, holder, (message) => ({
    ...message,
    notes: message.notes.map((one) => (one.entryId === note.entryId ? note : one)),
  }));
}

/**
 * Return the id of the newest message that fits, or undefined if it is not loaded.
 * @param {Thread} thread @param {(message: ViewMessage) => boolean} [fits]
 */
const newestId = (thread, fits = () => true) =>
  isAtNewest(thread) ? thread.ids.findLast((id) => fits(thread.messages[id])) : undefined;

/** @param {Thread} thread @param {string} entryId @returns {Thread} */
export function dropNote(thread, entryId) {
  const holder = thread.ids.find((id) => thread.messages[id].notes.some((note) => note.entryId === entryId));
  return changeMessage(thread, holder, (message) => ({
    ...message,
    notes: message.notes.filter((note) => note.entryId !== entryId),
  }));
}

/** Move the messages sent during a run to their final place: before the answer that has seen them, or after it. */
function moveMessages(/** @type {Thread} */ thread, /** @type {AppEvent} */ event) {
  const messages = { ...thread.messages };
  // The answer is the item that is not a message of the user. It may not be loaded yet.
  const answerId = event.items.find((/** @type {any} */ item) => messages[item.message_id]?.role !== "user")?.message_id;
  for (const { message_id: id, position } of event.items) {
    const known = messages[id];
    if (!known) continue;
    const isInjected = known.role === "user" ? event.kind === "injected" : known.isInjected;
    const parent = isInjected && known.role === "user" ? (answerId ?? known.parent) : known.parent;
    messages[id] = { ...known, position, isInjected, parent };
  }
  return { ...thread, messages, ids: thread.ids.toSorted((a, b) => messages[a].position - messages[b].position) };
}

/** Drop everything that a forgotten message said, but keep its forget proposal, whose receipt is shown below it. */
function forgetMessage(/** @type {Thread} */ thread, /** @type {Record<string, any>} */ raw) {
  return changeMessage(thread, raw.id, ({ run, forgetProposal }) => ({ ...viewMessage(raw), run, forgetProposal }));
}

/** Add a notice. A loaded page may contain it already, because the replay begins at a number read before the page. */
function addNotice(/** @type {Thread} */ thread, /** @type {AppEvent} */ event, /** @type {string} */ kind) {
  if (thread.ids.some((id) => thread.messages[id].notices.some(({ seq }) => seq === event.seq))) return thread;
  return changeAnswer(thread, event, (message) => ({
    ...message,
    notices: [...message.notices, { seq: event.seq, kind, text: event.text }],
  }));
}

/** Remove the pending message whose stored one has arrived. */
function settlePending(/** @type {Thread} */ thread, /** @type {Record<string, any>} */ raw) {
  if (raw.role !== "user" || !thread.pending.length) return thread;
  const { text } = viewMessage(raw);
  const settled =
    thread.pending.find((item) => item.messageId === raw.id) ??
    thread.pending.find((item) => item.messageId === null && item.text === text);
  return settled ? { ...thread, pending: thread.pending.filter((item) => item !== settled) } : thread;
}
