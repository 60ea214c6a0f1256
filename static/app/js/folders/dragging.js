/** Dragging chats into a folder or out of it. The menu of each chat does the same by keyboard. */

import { signal } from "@preact/signals";
import { moveConversation } from "./commands.js";

const KIND = "application/x-palimpsest-chat";

/** The place below a dragged chat: a folder's id, "" outside all folders, or null if nothing is dragged there. */
export const target = signal(/** @type {string|null} */ (null));

/** @param {string} id */
export const dragged = (id) => (/** @type {DragEvent} */ event) => event.dataTransfer?.setData(KIND, id);

/** Return the event handlers that let an element accept chats. @param {string|null} folder */
export const takesChats = (folder) => ({
  onDragOver: (/** @type {DragEvent} */ event) => {
    if (!event.dataTransfer?.types.includes(KIND)) return;
    event.preventDefault();
    event.stopPropagation();
    target.value = folder ?? "";
  },
  onDragLeave: (/** @type {DragEvent} */ event) => {
    if (event.currentTarget instanceof Element && !event.currentTarget.contains(/** @type {Node|null} */ (event.relatedTarget))) target.value = null;
  },
  onDrop: (/** @type {DragEvent} */ event) => {
    const id = event.dataTransfer?.getData(KIND);
    target.value = null;
    if (!id) return;
    event.preventDefault();
    event.stopPropagation();
    moveConversation(id, folder);
  },
});
