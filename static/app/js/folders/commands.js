/** Opening, creating, changing and deleting folders, and moving conversations between them. */

import { get, patch, post, query, remove } from "../api.js";
import { changeConversation, loadListing, nameOf, errorText } from "../commands/conversations.js";
import { goTo } from "../commands/navigation.js";
import { t } from "../i18n.js";
import { changeUi, conversations, currentId, dispatch, showToast } from "../state/store.js";
import { byFolder, chosenFolder, folderNamed, folders, keepOpen, nextCursors, openFolders } from "./store.js";

/** @typedef {import("./store.js").Folder} Folder */
/** @typedef {import("./store.js").Conversation} Conversation */

const LISTED = 30;
const MOST = 100;

/** @param {() => Promise<unknown>} work @returns {Promise<boolean>} whether it was done; otherwise an error is shown */
async function attempt(work) {
  try {
    await work();
    return true;
  } catch (error) {
    showToast(errorText(error), "bad");
    return false;
  }
}

export const loadFolders = () =>
  attempt(async () => {
    folders.value = (await get("/folders")).items;
    const isOpen = (/** @type {string} */ id) => openFolders.value.has(id);
    // Closed folders are read again when they open.
    nextCursors.value = Object.fromEntries(Object.entries(nextCursors.value).filter(([id]) => isOpen(id)));
    await Promise.all(folders.value.filter(({ id }) => isOpen(id)).map(({ id }) => readFolder(id, null)));
  });

/** Load the next page of a folder. @param {string} id */
export const loadFolder = (id) => attempt(() => readFolder(id, nextCursors.value[id] ?? null));

/** @param {string} id @param {string|null} cursor null reads again what was loaded, and drops chats that are gone */
async function readFolder(id, cursor) {
  const known = new Map(cursor ? [] : inFolder(id).map((one) => [one.id, one.last_activity_at]));
  const limit = Math.min(MOST, Math.max(LISTED, known.size));
  const { items, next_cursor: next } = await get(`/conversations${query({ folder: id, cursor, limit })}`);
  for (const conversation of items) dispatch({ type: "conversation/put", conversation });
  const there = new Set(items.map((/** @type {Conversation} */ one) => one.id));
  for (const { id: chat, last_activity_at: at } of inFolder(id)) {
    const wouldBeThere = known.get(chat) === at && (!next || at > items.at(-1).last_activity_at);
    if (wouldBeThere && !there.has(chat) && chat !== currentId.value) dispatch({ type: "conversation/forgotten", id: chat });
  }
  nextCursors.value = { ...nextCursors.value, [id]: next };
}

/** @param {string} id */
const inFolder = (id) => byFolder.value[id] ?? [];

/** @param {string} id */
export function toggleFolder(id) {
  const isOpen = !openFolders.value.has(id);
  keepOpen(id, isOpen);
  if (isOpen && !(id in nextCursors.value)) loadFolder(id);
}

/** Start a new chat in a folder. @param {string} id */
export function beginIn(id) {
  chosenFolder.value = id;
  goTo(null);
}

/** @param {string} id @param {string|null} folder */
export async function moveConversation(id, folder) {
  const before = conversations.value[id]?.folder ?? null;
  if (before === folder) return;
  if (!(await changeConversation(id, { folder }))) return;
  if (folder) keepOpen(folder, true);
  if (folder && !(folder in nextCursors.value)) loadFolder(folder);
  const name = folderNamed(folder)?.name ?? "";
  const title = nameOf(id);
  const text = folder ? t("Moved to {name}: {title}", { name, title }) : t("Removed from its folder: {title}", { title });
  showToast(text, "plain", { name: t("Undo"), run: () => changeConversation(id, { folder: before }), about: id });
}

/**
 * @param {Folder|null} folder null for a new one @param {Record<string, unknown>} fields
 * @returns {Promise<Folder|null>}
 */
export async function saveFolder(folder, fields) {
  /** @type {Folder|null} */
  let saved = null;
  await attempt(async () => {
    saved = folder ? await patch(`/folders/${folder.id}`, fields) : await post("/folders", fields);
    await loadFolders();
  });
  return saved;
}

/** @param {Folder} folder */
export function askToDeleteFolder({ id, name }) {
  const onConfirm = async () => {
    if (!(await attempt(() => remove(`/folders/${id}`)))) return;
    for (const one of Object.values(conversations.value)) {
      if (one.folder === id) dispatch({ type: "conversation/put", conversation: { ...one, folder: null } });
    }
    if (chosenFolder.value === id) chosenFolder.value = null;
    await Promise.all([loadFolders(), loadListing()]);
  };
  const text = t("Its name and its instructions will be gone for good. Its chats are kept.");
  changeUi({ dialog: { kind: "confirm", title: t("Delete {name}?", { name }), text, action: t("Delete"), onConfirm } });
}

/**
 * @param {Folder|null} folder null for a new one
 * @param {(folder: string) => unknown} [moves] called with the saved folder's id, to move chats there
 */
export const openFolderDialog = (folder, moves) => changeUi({ dialog: { kind: "folder", folder, moves } });

/** @param {import("../state/types.js").Conversation} conversation */
export const openMoveDialog = (conversation) => changeUi({ dialog: { kind: "move", conversation } });
