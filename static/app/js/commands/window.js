/** Shows any place of a conversation, in any branch, and goes back to its newest message. */

import { ApiError, get, post, query } from "../api.js";
import { t } from "../i18n.js";
import { isAtNewest } from "../state/pages.js";
import { dispatch, showToast, state } from "../state/store.js";
import { belongsToAnswer } from "../state/tools.js";
import { errorText } from "./conversations.js";
import { watchAgain } from "./live.js";
import { PAGE, readPage } from "./pages.js";

/** @param {string} id @param {string} messageId @returns {Promise<boolean>} whether it is shown now */
export async function showMessage(id, messageId) {
  let shownId = messageId;
  // Messages of another branch may be loaded, but only those in `ids` are shown.
  if (!state.value.threads[id]?.ids.includes(messageId)) {
    const isLoaded = await replaceView(async () => {
      const { found, ...loaded } = await readAround(id, messageId);
      shownId = found;
      return loaded;
    });
    if (!isLoaded) return false;
  }
  dispatch({ type: "message/sought", id, messageId: shownId });
  return true;
}

/** @param {string} id @returns {Promise<boolean>} whether the newest message is loaded */
export async function backToNewest(id) {
  if (!(await replaceView(() => readPage(id)))) return false;
  if (location.hash) history.replaceState(null, "", location.pathname);
  return true;
}

/** @param {string} id */
export async function loadNewer(id) {
  const thread = state.value.threads[id];
  if (!thread || isAtNewest(thread) || thread.isLoadingNewer) return;
  const after = thread.newerCursor;
  dispatch({ type: "newer/loading", id });
  try {
    const conversation = await get(`/conversations/${id}`);
    const page = await get(`/conversations/${id}/messages${query({ after, limit: PAGE })}`);
    dispatch({ type: "newer/loaded", id, after, page, conversation });
    if (!page.newer_cursor) watchAgain();
  } catch (error) {
    dispatch({ type: "newer/failed", id });
    showToast(errorText(error), "bad");
  }
}

/**
 * Replace the shown messages, or keep them if the new ones cannot be read.
 * @param {() => Promise<Record<string, any>>} read
 */
async function replaceView(read) {
  try {
    dispatch({ type: "thread/loaded", ...(await read()) });
    watchAgain();
    return true;
  } catch (error) {
    showToast(errorText(error), "bad");
    return false;
  }
}

/**
 * Read the page around a message. `found`: the message, or the answer that a tool call or result belongs to.
 * @param {string} id @param {string} messageId @returns {Promise<Record<string, any> & {found: string}>}
 */
async function readAround(id, messageId) {
  const loaded = await inItsBranch(id, messageId, () => readPage(id, { around: messageId }));
  const raw = loaded.page.items.find((/** @type {any} */ item) => item.id === messageId);
  return belongsToAnswer(raw) && raw.parent ? readAround(id, raw.parent) : { ...loaded, found: messageId };
}

/**
 * Call `read`, after switching to the message's branch if the conversation shows another one.
 * @template T @param {string} id @param {string} messageId @param {() => Promise<T>} read @returns {Promise<T>}
 */
async function inItsBranch(id, messageId, read) {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 404) throw new ApiError(404, error.code, t("That message is no longer there."));
    if (error.code !== "other_branch") throw error;
  }
  await post(`/conversations/${id}/messages/${messageId}/show`);
  return read();
}
