/** What is loaded of a conversation: its newest page, one around a message, older ones. */

import { ApiError, get, query } from "../api.js";
import { editedId } from "../state/draft.js";
import { isAtNewest } from "../state/pages.js";
import { dispatch, showToast, state } from "../state/store.js";
import { sentenceOf } from "./conversations.js";

export const PAGE = 60;
/** A divider that lies a little above the newest page is worth loading at once; a far one is not. */
const MAX_LOADED_FOR_DIVIDER = 360;

/**
 * The numbers before the page: what happens in between is replayed, and taken once.
 * @param {string} id @param {{around?: string}} [place] a message; the newest page without one
 */
export async function readPage(id, { around } = {}) {
  const conversation = await get(`/conversations/${id}`);
  const [page, compactions] = await Promise.all([
    get(`/conversations/${id}/messages${query({ around, limit: PAGE })}`),
    get(`/conversations/${id}/compactions`),
  ]);
  return { conversation, page, compactions: compactions.items };
}

/** @param {string} id */
export async function loadThread(id) {
  try {
    dispatch({ type: "thread/loaded", ...(await readPage(id)) });
    return true;
  } catch (error) {
    const isMissing = error instanceof ApiError && error.status === 404;
    dispatch({ type: "thread/failed", id, isMissing, message: sentenceOf(error) });
    return false;
  }
}

/** @param {string} id @returns {Promise<boolean>} whether there was more */
export async function loadOlder(id, leavesNewest = false) {
  const thread = state.value.threads[id];
  if (!thread || !thread.olderCursor || thread.isLoadingOlder) return false;
  const before = thread.olderCursor;
  dispatch({ type: "older/loading", id });
  try {
    const page = await get(`/conversations/${id}/messages${query({ before, limit: PAGE })}`);
    // Whoever scrolls up to look something up for a message that is being edited comes back to it.
    dispatch({ type: "older/loaded", id, before, page, leavesNewest: leavesNewest && editedId.value === null });
    return true;
  } catch (error) {
    dispatch({ type: "older/failed", id });
    showToast(sentenceOf(error), "bad");
    return false;
  }
}

/** Loads on until the newest divider has its place. @param {string} id */
export async function loadToDivider(id) {
  for (;;) {
    const thread = state.value.threads[id];
    if (!thread || !isAtNewest(thread)) return;
    const divider = thread.compactions.findLast((one) => one.status === "done" || one.status === "running");
    const first = thread.messages[thread.ids[0]];
    if (!divider || !first || first.position <= divider.last_position) return;
    const isFar = thread.ids.length + first.position - divider.last_position > MAX_LOADED_FOR_DIVIDER;
    if (isFar || !(await loadOlder(id))) return;
  }
}
