/** Actions on all selected conversations: archive, move and delete, which can be undone, and export. */

import { post } from "../api.js";
import { boot } from "../boot.js";
import { loadListing, loadWholeListing, errorText } from "../commands/conversations.js";
import { goTo } from "../commands/navigation.js";
import { loadFolders } from "../folders/commands.js";
import { folderNamed, keepOpen } from "../folders/store.js";
import { groupByAge } from "../format.js";
import { t, translateServerText } from "../i18n.js";
import { changeUi, conversations, currentId, dispatch, listing, showToast } from "../state/store.js";
import { endSelection, select, selection } from "./store.js";

/** @typedef {import("../state/types.js").Conversation} Conversation */
/** @typedef {{action: "archive"|"unarchive"|"move"|"trash"|"restore", folder?: string|null}} Change */

export const AT_ONCE = 100;

/** Select the whole list, including the rows that are not loaded yet. */
export async function selectAll() {
  await loadWholeListing();
  if (selection.value) select(listing.value.ids);
}

/** Return the ids of the list in the order in which it shows them. */
export function shownIds() {
  const { ids, query } = listing.value;
  if (query) return ids;
  return groupByAge(ids.flatMap((id) => conversations.value[id] ?? []), new Date()).flatMap(({ items }) => items.map(({ id }) => id));
}

const chosen = () => [...(selection.value ?? [])].flatMap((id) => conversations.value[id] ?? []);

/**
 * Change conversations in requests of at most AT_ONCE ids, and show why one was refused.
 * @param {string[]} ids @param {Change} change @returns {Promise<string[]>} the ids that were changed
 */
async function ask(ids, change) {
  /** @type {string[]} */
  const done = [];
  try {
    for (let from = 0; from < ids.length; from += AT_ONCE) {
      const answer = await post("/conversations/bulk", { ids: ids.slice(from, from + AT_ONCE), ...change });
      done.push(...answer.done);
      if (answer.refused.length) showToast(translateServerText(answer.refused[0].message), "bad");
    }
  } catch (error) {
    showToast(errorText(error), "bad");
  }
  return done;
}

/** @param {Conversation[]} items @param {Partial<Conversation>} news */
const put = (items, news) => {
  for (const item of items) dispatch({ type: "conversation/put", conversation: { ...item, ...news } });
};

/** @param {string[]} done @param {string} text @param {() => Promise<unknown>} undo */
function offerBack(done, text, undo) {
  if (!done.length) return;
  endSelection();
  const run = async () => {
    await undo();
    loadListing({ showsArchived: listing.value.showsArchived });
    loadFolders();
  };
  showToast(text, "plain", { name: t("Undo"), run });
}

/** @param {boolean} isArchived */
export async function archiveSelected(isArchived) {
  const items = chosen();
  const done = await ask(items.map(({ id }) => id), { action: isArchived ? "archive" : "unarchive" });
  put(items.filter(({ id }) => done.includes(id)), { archived: isArchived });
  const text = isArchived ? t("Archived: {n}", { n: done.length }) : t("Unarchived: {n}", { n: done.length });
  offerBack(done, text, () => ask(done, { action: isArchived ? "unarchive" : "archive" }));
}

/** @param {string|null} folder */
export async function moveSelected(folder) {
  const items = chosen();
  const done = await ask(items.map(({ id }) => id), { action: "move", folder });
  put(items.filter(({ id }) => done.includes(id)), { folder });
  if (folder) keepOpen(folder, true);
  const name = folderNamed(folder)?.name ?? t("No folder");
  offerBack(done, t("Moved to {name}: {n}", { name, n: done.length }), async () => {
    for (const before of new Set(items.map((item) => item.folder ?? null))) {
      const ids = items.filter((item) => (item.folder ?? null) === before && done.includes(item.id)).map(({ id }) => id);
      if (ids.length) await ask(ids, { action: "move", folder: before });
    }
  });
}

export function deleteSelected() {
  const ids = chosen().map(({ id }) => id);
  if (boot.trash_days) return trash(ids);
  const text = t("{n} chats and what was remembered from them will be gone for good.", { n: ids.length });
  const onConfirm = () => trash(ids);
  return changeUi({ dialog: { kind: "confirm", title: t("Delete for good?"), text, action: t("Delete"), onConfirm } });
}

/** @param {string[]} ids */
async function trash(ids) {
  const done = await ask(ids, { action: "trash" });
  const open = currentId.value;
  for (const id of done) dispatch({ type: "conversation/forgotten", id });
  if (open && done.includes(open)) goTo(null, { replaces: true });
  if (boot.trash_days) offerBack(done, t("Moved to the trash: {n}", { n: done.length }), () => ask(done, { action: "restore" }));
  else endSelection();
}

/**
 * Return the download address of the selected conversations, at most AT_ONCE of them.
 * @param {"markdown"|"json"} format
 */
export const exportAddress = (format) => `/api/v1/conversations/export?format=${format}&ids=${[...(selection.value ?? [])].slice(0, AT_ONCE).join(",")}`;

export const openMoveSelected = () => changeUi({ dialog: { kind: "move", conversation: null } });
