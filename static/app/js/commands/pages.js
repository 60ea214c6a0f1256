/** Loads pages of a conversation: the newest, the one around a message, and older ones. */

import { ApiError, get, query } from "../api.js";
import { editedId } from "../state/draft.js";
import { isAtNewest } from "../state/pages.js";
import { dispatch, showToast, state } from "../state/store.js";
import { errorText } from "./conversations.js";

export const PAGE = 60;
/** The most messages to load at once in order to reach a divider above the newest page. */
const MAX_LOADED_FOR_DIVIDER = 360;

/**
 * Read the event number and then a page of messages, so that events in between are replayed, and applied once.
 * @param {string} id @param {{around?: string}} [place] a message; without it the newest page
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
    dispatch({ type: "thread/failed", id, isMissing, message: errorText(error) });
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
    // Keep a message that is being edited, because a reader who scrolled up comes back to it.
    dispatch({ type: "older/loaded", id, before, page, leavesNewest: leavesNewest && editedId.value === null });
    return true;
  } catch (error) {
    dispatch({ type: "older/failed", id });
    showToast(errorText(error), "bad");
    return false;
  }
}

/** Load older pages until the newest divider has its place. @param {string} id */
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
