/** What a person does with conversations: list, rename, pin, archive. */

import { ApiError, get, patch, query } from "../api.js";
import { brief } from "../format.js";
import { t } from "../i18n.js";
import { dispatch, listing, showToast, state } from "../state/store.js";

const LISTED = 40;
/** In one request. */
const MOST = 100;

/** @param {unknown} error */
export const sentenceOf = (error) =>
  error instanceof ApiError ? error.message : t("Something went wrong here. Reload the page and try again.");

/** What is in a folder is listed there; a search and the archive show all. @param {string} q @param {boolean} archived */
const filterOf = (q, archived) => ({ q, archived: archived || null, folder: q || archived ? null : "none" });

/** @param {{query?: string, showsArchived?: boolean}} [filter] */
export async function loadListing({ query: q = "", showsArchived = false } = {}) {
  await readListing(q, showsArchived);
}

/** From the top, as far down as it was loaded: nobody who scrolled down loses their place. */
export async function reloadListing() {
  const { ids, query: q, showsArchived } = listing.value;
  await readListing(q, showsArchived, null, Math.max(LISTED, ids.length));
}

/** Another list may be wanted when the page is here. @param {string} q @param {boolean} showsArchived @param {string|null} [cursor] of the page; the first without one @param {number} [count] */
async function readListing(q, showsArchived, cursor = null, count = LISTED) {
  const asked = state.value.conversations;
  const isWanted = () => listing.value.query === q && listing.value.showsArchived === showsArchived;
  dispatch({ type: "listing/loading", query: q, showsArchived });
  try {
    const page = await readRows(filterOf(q, showsArchived), cursor, count);
    if (isWanted()) dispatch({ type: "listing/loaded", page, isFirst: !cursor, asked });
  } catch (error) {
    if (isWanted()) dispatch({ type: "listing/failed", message: sentenceOf(error) });
  }
}

/** So many, as far as there are, in one page. @param {ReturnType<typeof filterOf>} filter @param {string|null} cursor @param {number} count */
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

/** Who asks while a page is on its way waits for it. */
export const loadMoreListing = () => (loading ??= loadNextPage().finally(() => (loading = null)));

export async function loadWholeListing() {
  /** @type {string|null} */
  let before = null;
  // Where a page fails its cursor stays, and the list says why.
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

/** Into the archive or out of it. @param {string} id @param {boolean} archived */
export async function archiveConversation(id, archived) {
  if (!(await changeConversation(id, { archived }))) return;
  const undo = () => changeConversation(id, { archived: !archived });
  const title = nameOf(id);
  showToast(archived ? t("Archived: {title}", { title }) : t("Unarchived: {title}", { title }), "plain", { name: t("Undo"), run: undo, about: id });
}

/** In a short notice. @param {string} id */
export const nameOf = (id) => brief(state.value.conversations[id]?.title || t("New chat"));

/** @param {string} id @param {Record<string, unknown>} change @returns {Promise<boolean>} whether it was changed; else the person was told */
export async function changeConversation(id, change) {
  const before = state.value.conversations[id];
  // It may be gone, when the change of before is undone.
  if (before) dispatch({ type: "conversation/put", conversation: { ...before, ...change } });
  try {
    dispatch({ type: "conversation/put", conversation: await patch(`/conversations/${id}`, change) });
    return true;
  } catch (error) {
    if (before) dispatch({ type: "conversation/put", conversation: before });
    showToast(sentenceOf(error), "bad");
    return false;
  }
}
