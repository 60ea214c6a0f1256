/** Rewriting a question or an answer beside the old one, and switching between branches. */

import { patch, patchAsync, post } from "../api.js";
import { t } from "../i18n.js";
import { branchAfter, stopEditing } from "../state/draft.js";
import { currentId, currentThread, dispatch, showToast } from "../state/store.js";
import { reloadThread } from "./live.js";
import { newClientId, tell } from "./messages.js";
import { goTo } from "./navigation.js";
import { showMessage } from "./window.js";

/** @typedef {import("../state/types.js").ViewMessage} ViewMessage */

/** Send an edited question with its attachments. @param {ViewMessage} message @param {string} content */
export async function sendEdited({ id, images, files }, content) {
  const attachments = [...images, ...files].map((part) => part.file_id);
  const chat = currentId.value;
  const path = `/conversations/${chat}/messages/${id}`;
  const isSent = await tell(() => patchAsync(path, { content, attachments, client_id: newClientId() }));
  if (!isSent || chat === null) return;
  await reloadThread(chat);
  stopEditing(id);
}

/** Save an answer in the user's words, beside the old one. @param {ViewMessage} message @param {string} content */
export async function saveAnswer({ id }, content) {
  const chat = currentId.value;
  const isSaved = await tell(() => patch(`/conversations/${chat}/messages/${id}`, { content }));
  if (!isSaved || chat === null) return;
  await reloadThread(chat);
  stopEditing(id);
}

/** Create a chat that begins with the open one up to this message. @param {string} messageId */
export async function forkAt(messageId) {
  await tell(async () => {
    const conversation = await post(`/conversations/${currentId.value}/fork`, { message_id: messageId });
    dispatch({ type: "conversation/put", conversation });
    goTo(conversation.id);
    showToast(t("A new chat that begins with this one."));
  });
}

/** @param {string} messageId one of a message's siblings */
export async function showSibling(messageId) {
  const id = currentId.value;
  const isShown = await tell(async () => {
    const conversation = await post(`/conversations/${id}/messages/${messageId}/show`);
    dispatch({ type: "conversation/put", conversation });
  });
  if (!isShown || id === null) return;
  await reloadThread(id);
  if (currentThread.value?.messages[messageId]) focusOn(messageId);
  else await showMessage(id, messageId);
}

/** Restore the reader's place and focus: the pressed button is gone with the other branch. @param {string} messageId */
function focusOn(messageId) {
  requestAnimationFrame(() => {
    const message = document.getElementById(`m-${messageId}`);
    message?.scrollIntoView({ block: "nearest" });
    /** @type {HTMLElement|null|undefined} */ (message?.querySelector(".siblings button:enabled"))?.focus({ preventScroll: true });
  });
}

/** @param {string} answerId */
export function branchHere(answerId) {
  branchAfter.value = answerId;
  document.getElementById("composer")?.focus();
}
