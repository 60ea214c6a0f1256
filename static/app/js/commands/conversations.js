/** What a person does with conversations: list, open, rename, pin, archive, delete. */

import { ApiError, get, patch, query, remove } from "../api.js";
import { t } from "../i18n.js";
import { dispatch, listing, showToast, state } from "../state/store.js";

const LISTED = 40;
const PAGE = 60;
const LARGEST_PAGE = 200;
const MAX_PAGES_TO_MESSAGE = 30;
/** A divider that lies a little above the newest page is worth loading at once; a far one is not. */
const MAX_LOADED_FOR_DIVIDER = 360;

/** @param {unknown} error */
export const sentenceOf = (error) =>
  error instanceof ApiError ? error.message : t("Something went wrong here. Reload the page and try again.");

/** @param {{query?: string, showsArchived?: boolean}} [filter] */
export async function loadListing({ query: q = "", showsArchived = false } = {}) {
  dispatch({ type: "listing/loading", query: q, showsArchived });
  try {
    const page = await get(`/conversations${query({ q, archived: showsArchived || null, limit: LISTED })}`);
    if (listing.value.query !== q || listing.value.showsArchived !== showsArchived) return;
    dispatch({ type: "listing/loaded", page, isFirst: true });
  } catch (error) {
    dispatch({ type: "listing/failed", message: sentenceOf(error) });
  }
}

export async function loadMoreListing() {
  const { nextCursor, isLoading, query: q, showsArchived } = listing.value;
  if (!nextCursor || isLoading) return;
  dispatch({ type: "listing/loading", query: q, showsArchived });
  try {
    const path = `/conversations${query({ q, archived: showsArchived || null, cursor: nextCursor, limit: LISTED })}`;
    dispatch({ type: "listing/loaded", page: await get(path), isFirst: false });
  } catch (error) {
    dispatch({ type: "listing/failed", message: sentenceOf(error) });
  }
}

/** The numbers before the page: what happens in between is replayed, and taken once. @param {string} id */
export async function loadThread(id) {
  try {
    const conversation = await get(`/conversations/${id}`);
    const [page, compactions] = await Promise.all([
      get(`/conversations/${id}/messages${query({ limit: PAGE })}`),
      get(`/conversations/${id}/compactions`),
    ]);
    dispatch({ type: "thread/loaded", conversation, page, compactions: compactions.items });
    return true;
  } catch (error) {
    const isMissing = error instanceof ApiError && error.status === 404;
    dispatch({ type: "thread/failed", id, isMissing, message: sentenceOf(error) });
    return false;
  }
}

/** @param {string} id @param {number} [limit] @returns {Promise<boolean>} whether there was more */
export async function loadOlder(id, limit = PAGE) {
  const thread = state.value.threads[id];
  if (!thread || !thread.olderCursor || thread.isLoadingOlder) return false;
  dispatch({ type: "older/loading", id });
  try {
    const page = await get(`/conversations/${id}/messages${query({ before: thread.olderCursor, limit })}`);
    dispatch({ type: "older/loaded", id, page });
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
    const divider = thread?.compactions.findLast((one) => one.status === "done" || one.status === "running");
    const first = thread?.messages[thread.ids[0]];
    if (!divider || !first || first.position <= divider.last_position) return;
    const isFar = thread.ids.length + first.position - divider.last_position > MAX_LOADED_FOR_DIVIDER;
    if (isFar || !(await loadOlder(id))) return;
  }
}

/** Loads on until the message is there. @param {string} id @param {string} messageId */
export async function loadToMessage(id, messageId) {
  for (let pages = 0; pages < MAX_PAGES_TO_MESSAGE; pages += 1) {
    if (state.value.threads[id]?.messages[messageId]) return true;
    if (!(await loadOlder(id, LARGEST_PAGE))) return false;
  }
  showToast(t("That message is too far up to jump to; scroll up to it."), "bad");
  return false;
}

/** @param {string} id @param {Record<string, unknown>} change */
export async function changeConversation(id, change) {
  const before = state.value.conversations[id];
  dispatch({ type: "conversation/put", conversation: { ...before, ...change } });
  try {
    dispatch({ type: "conversation/put", conversation: await patch(`/conversations/${id}`, change) });
  } catch (error) {
    if (before) dispatch({ type: "conversation/put", conversation: before });
    showToast(sentenceOf(error), "bad");
  }
}

/** @param {string} id */
export async function deleteConversation(id) {
  try {
    await remove(`/conversations/${id}`);
    dispatch({ type: "conversation/forgotten", id });
    showToast(t("The conversation was deleted."));
    return true;
  } catch (error) {
    showToast(sentenceOf(error), "bad");
    return false;
  }
}
