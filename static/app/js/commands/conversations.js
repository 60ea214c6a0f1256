/** Listing, renaming, pinning and archiving conversations. */

import { ApiError, get, patch, query } from "../api.js";
import { brief } from "../format.js";
import { t } from "../i18n.js";
import { dispatch, listing, showToast, state } from "../state/store.js";

const LISTED = 40;
/** The most rows in one request. */
const MOST = 100;

/** @param {unknown} error */
export const errorText = (error) =>
  error instanceof ApiError ? error.message : t("Something went wrong here. Reload the page and try again.");

/**
 * Return the filter of the list. Folders list their own chats, but a search and the archive show all.
 * @param {string} q @param {boolean} archived
 */
const filterOf = (q, archived) => ({ q, archived: archived || null, folder: q || archived ? null : "none" });

/** @param {{query?: string, showsArchived?: boolean}} [filter] */
export async function loadListing({ query: q = "", showsArchived = false } = {}) {
  await readListing(q, showsArchived);
}

/** Reload the list as far down as it was loaded, so that a reader who scrolled keeps their place. */
export async function reloadListing() {
  const { ids, query: q, showsArchived } = listing.value;
  await readListing(q, showsArchived, null, Math.max(LISTED, ids.length));
}

/**
 * Read a page of the list. Drop it if another list is wanted when it arrives.
 * @param {string} q @param {boolean} showsArchived @param {string|null} [cursor] null for the first page
 * @param {number} [count]
 */
async function readListing(q, showsArchived, cursor = null, count = LISTED) {
  const asked = state.value.conversations;
  const isWanted = () => listing.value.query === q && listing.value.showsArchived === showsArchived;
  dispatch({ type: "listing/loading", query: q, showsArchived });
  try {
    const page = await readRows(filterOf(q, showsArchived), cursor, count);
    if (isWanted()) dispatch({ type: "listing/loaded", page, isFirst: !cursor, asked });
  } catch (error) {
    if (isWanted()) dispatch({ type: "listing/failed", message: errorText(error) });
  }
}

/**
 * Return up to `count` rows as one page.
 * @param {ReturnType<typeof filterOf>} filter @param {string|null} cursor @param {number} count
 */
async function readRows(filter, cursor, count) {
  const items = [];
  let next = cursor;
  do {
    const page = await get(`/conversations${query({ ...filter, cursor: next, limit: Math.min(MOST, count - items.length) })}`);
    items.push(...page.items);
    next = page.next_cursor;
  } while (next && items.length < count);
  return { items, next_cursor: next };
}

/** @type {Promise<void>|null} */
let loading = null;

/** Load the next page. Concurrent callers wait for the same request. */
export const loadMoreListing = () => (loading ??= loadNextPage().finally(() => (loading = null)));

export async function loadWholeListing() {
  /** @type {string|null} */
  let before = null;
  // Stop at a page that failed: its cursor stays, and the list shows the error.
  while (listing.value.nextCursor && listing.value.nextCursor !== before) {
    before = listing.value.nextCursor;
    await loadMoreListing();
  }
}

async function loadNextPage() {
  const { nextCursor, isLoading, query: q, showsArchived } = listing.value;
  if (!nextCursor || isLoading) return;
  await readListing(q, showsArchived, nextCursor);
}

/** Move a conversation into the archive or out of it. @param {string} id @param {boolean} archived */
export async function archiveConversation(id, archived) {
  if (!(await changeConversation(id, { archived }))) return;
  const undo = () => changeConversation(id, { archived: !archived });
  const title = nameOf(id);
  showToast(archived ? t("Archived: {title}", { title }) : t("Unarchived: {title}", { title }), "plain", { name: t("Undo"), run: undo, about: id });
}

/** Return the title for a short notice. @param {string} id */
export const nameOf = (id) => brief(state.value.conversations[id]?.title || t("New chat"));

/**
 * @param {string} id @param {Record<string, unknown>} change
 * @returns {Promise<boolean>} whether it was changed; otherwise an error is shown
 */
export async function changeConversation(id, change) {
  const before = state.value.conversations[id];
  // The conversation may have been deleted before its change is undone.
  if (before) dispatch({ type: "conversation/put", conversation: { ...before, ...change } });
  try {
    dispatch({ type: "conversation/put", conversation: await patch(`/conversations/${id}`, change) });
    return true;
  } catch (error) {
    if (before) dispatch({ type: "conversation/put", conversation: before });
    showToast(errorText(error), "bad");
    return false;
  }
}
