/** What loaded pages do to a conversation: its newest one, those beside it, or a window further up. Pure. */

import { viewMessage } from "./messages.js";
import { belongsToAnswer } from "./tools.js";

/** @typedef {import("./types.js").Thread} Thread */
/** @typedef {{items: any[], next_cursor: string|null, newer_cursor?: string|null}} Page */

/** In the page, once the reader has scrolled far back. */
const MOST_MESSAGES = 280;

/** Whether the newest message is loaded. Else a window is shown, and what happens at the end is not put into it. */
export const isAtNewest = (/** @type {Thread} */ thread) => thread.newerCursor === null;

/** @param {Thread} thread @param {import("./types.js").ActiveRun|null} run @returns {Thread} */
export const withRun = (thread, run) => ({ ...thread, run, liveAnswer: run?.message_id ?? thread.liveAnswer });

/** In place of whatever was shown. @param {Thread} thread @param {Record<string, any>} loaded @returns {Thread} */
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
    sought: isBack ? { messageId: null } : null,
    compactions,
    pending: thread.pending.filter((item) => !messages.some((message) => message.id === item.messageId)),
  };
}

/**
 * A page that was asked for before the view was replaced has no place in it. `leavesNewest`: who scrolls back through
 * thousands leaves the newest behind, or the page would grow with them.
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

/** The oldest `most` of them, as a window further up; all of them while something is on its way to the end. @param {Thread} thread @param {number} most @returns {Thread} */
function leaveNewest(thread, most) {
  if (thread.ids.length <= most || thread.run || thread.pending.length) return thread;
  const ids = thread.ids.slice(0, most);
  const messages = Object.fromEntries(ids.map((id) => [id, thread.messages[id]]));
  // A newer page that is on its way belongs behind what is left here, and is dropped.
  return { ...thread, ids, messages, newerCursor: String(thread.messages[ids[most - 1]].position), isLoadingNewer: false };
}

/**
 * With the last of them the newest messages are there, and what happens is followed again: from the number that was
 * read before the page, so that nothing is missed in between.
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
 * What was streamed while the page was on its way stays in view until the events after the page bring it again.
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
