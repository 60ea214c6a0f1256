/** What a person does with conversations: list, rename, pin, archive, delete. */

import { ApiError, get, patch, query, remove } from "../api.js";
import { t } from "../i18n.js";
import { dispatch, listing, showToast, state } from "../state/store.js";

const LISTED = 40;

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
