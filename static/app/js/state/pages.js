/** Loaded pages of a conversation: the newest one, the ones beside it, or a window further up. Pure functions. */

import { viewMessage } from "./messages.js";
import { belongsToAnswer } from "./tools.js";

/** @typedef {import("./types.js").Thread} Thread */
/** @typedef {{items: any[], next_cursor: string|null, newer_cursor?: string|null}} Page */

/** The most messages in the page once the reader has scrolled far back. */
const MOST_MESSAGES = 280;

/** Return whether the newest message is loaded. Otherwise a window is shown, to which no new messages are added. */
export const isAtNewest = (/** @type {Thread} */ thread) => thread.newerCursor === null;

/** @param {Thread} thread @param {import("./types.js").ActiveRun|null} run @returns {Thread} */
export const withRun = (thread, run) => ({ ...thread, run, liveAnswer: run?.message_id ?? thread.liveAnswer });

/**
 * Replace the shown messages by a loaded page.
 * @param {Thread} thread @param {Record<string, any>} loaded @returns {Thread}
 */
export function loadPage(thread, { conversation, page, compactions }) {
  const messages = viewPage(page, thread.messages);
  const newerCursor = page.newer_cursor ?? null;
  const isBack = !isAtNewest(thread) && newerCursor === null;
  return {
    ...withRun(thread, conversation.active_run),
    status: "ready",
    lastSeq: conversation.last_seq,
    branch: conversation.branch ?? null,
    needsReplay: false,
    isStale: false,
    ids: messages.map((message) => message.id),
    messages: byId(messages),
    olderCursor: page.next_cursor,
    newerCursor,
    isLoadingOlder: false,
    isLoadingNewer: false,
    scrollTarget: isBack ? { messageId: null } : null,
    compactions,
    pending: thread.pending.filter((item) => !messages.some((message) => message.id === item.messageId)),
  };
}

/**
 * Prepend an older page, but drop it if the view was replaced since it was requested. `leavesNewest`: drop the newest
 * messages, or the page would grow with every page that the reader scrolls back.
 * @param {Thread} thread @param {string} before @param {Page} page @param {boolean} [leavesNewest] @returns {Thread}
 */
export function prependPage(thread, before, page, leavesNewest = false) {
  if (thread.olderCursor !== before) return thread;
  const older = newOnes(thread, page);
  const left = leavesNewest ? leaveNewest(thread, MOST_MESSAGES - older.length) : thread;
  return {
    ...left,
    isLoadingOlder: false,
    olderCursor: page.next_cursor,
    ids: [...older.map((message) => message.id), ...left.ids],
    messages: { ...byId(older), ...left.messages },
  };
}

/**
 * Keep the oldest `most` messages as a window further up, but keep all while an answer or a sent message is under way.
 * @param {Thread} thread @param {number} most @returns {Thread}
 */
function leaveNewest(thread, most) {
  if (thread.ids.length <= most || thread.run || thread.pending.length) return thread;
  const ids = thread.ids.slice(0, most);
  const messages = Object.fromEntries(ids.map((id) => [id, thread.messages[id]]));
  // A newer page that is still loading does not follow the kept messages, and will be dropped.
  return { ...thread, ids, messages, newerCursor: String(thread.messages[ids[most - 1]].position), isLoadingNewer: false };
}

/**
 * Append a newer page. With the last page, events apply again, from the number that was read before the page, so that
 * none is missed.
 * @param {Thread} thread @param {string} after @param {Page} page @param {Record<string, any>} conversation
 * @returns {Thread}
 */
export function appendPage(thread, after, page, conversation) {
  if (thread.newerCursor !== after) return thread;
  const newer = newOnes(thread, page);
  const appended = {
    ...thread,
    isLoadingNewer: false,
    newerCursor: page.newer_cursor ?? null,
    ids: [...thread.ids, ...newer.map((message) => message.id)],
    messages: { ...thread.messages, ...byId(newer) },
  };
  if (!isAtNewest(appended)) return appended;
  return { ...withRun(appended, conversation.active_run), lastSeq: conversation.last_seq, needsReplay: false };
}

/** @param {Page} page @param {Thread["messages"]} [known] */
const viewPage = (page, known = {}) =>
  page.items.filter((raw) => !belongsToAnswer(raw)).map((raw) => keepNewer(viewMessage(raw, known[raw.id]), known[raw.id]));

/**
 * Keep text that was streamed while the page was loading, until the events after the page bring it again.
 * @param {import("./types.js").ViewMessage} loaded @param {import("./types.js").ViewMessage} [known]
 */
function keepNewer(loaded, known) {
  if (!known || loaded.status !== "streaming" || known.chars <= loaded.chars) return loaded;
  const { status, text, chars } = known;
  return { ...loaded, status, text, chars };
}

/** @param {Thread} thread @param {Page} page */
const newOnes = (thread, page) => viewPage(page).filter((message) => !thread.messages[message.id]);

/** @param {import("./types.js").ViewMessage[]} messages */
const byId = (messages) => Object.fromEntries(messages.map((message) => [message.id, message]));
