/** The user's folders: which exist, which are open in the sidebar, and where the next chat begins. */

import { computed, signal } from "@preact/signals";
import { conversations } from "../state/store.js";
import { recall, remember } from "../storage.js";

/** @typedef {import("../state/types.js").Conversation} Conversation */
/** @typedef {{id: string, name: string, instructions: string, agent: string|null}} Folder */

const OPEN = "folders.open";

export const folders = signal(/** @type {Folder[]} */ ([]));
export const openFolders = signal(new Set((recall(OPEN) ?? "").split(",").filter(Boolean)));
/** Where the next page of each folder begins; null if all of it is loaded. */
export const nextCursors = signal(/** @type {Record<string, string|null>} */ ({}));
/** The folder in which the next new chat begins. */
export const chosenFolder = signal(/** @type {string|null} */ (null));

/** The known conversations of each folder, most recently used first. */
export const byFolder = computed(() => {
  /** @type {Record<string, Conversation[]>} */
  const found = {};
  for (const one of Object.values(conversations.value)) {
    if (one.folder && !one.archived) found[one.folder] = [...(found[one.folder] ?? []), one];
  }
  for (const items of Object.values(found)) items.sort((a, b) => b.last_activity_at.localeCompare(a.last_activity_at));
  return found;
});

/** @param {string|null} id */
export const folderNamed = (id) => folders.value.find((folder) => folder.id === id) ?? null;

/** @param {string} id @param {boolean} isOpen */
export function keepOpen(id, isOpen) {
  const ids = new Set(openFolders.value);
  if (isOpen) ids.add(id);
  else ids.delete(id);
  openFolders.value = ids;
  remember(OPEN, [...ids].join(","));
}
