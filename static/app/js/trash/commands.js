/** Deleting conversations: to the trash with an undo, or for good if they could not be restored. */

import { boot } from "../boot.js";
import { ApiError, post, remove } from "../api.js";
import { nameOf, errorText } from "../commands/conversations.js";
import { goTo } from "../commands/navigation.js";
import { t } from "../i18n.js";
import { changeUi, currentId, dispatch, showToast } from "../state/store.js";

/** @typedef {import("../state/types.js").Conversation} Conversation */
/** @typedef {{id: string, title: string, message_count: number, reason: "by_hand"|"idle", trashed_at: string,
 *   purge_at: string}} Trashed */

const ATTEMPTS = 5;
const PAUSE_MS = 1000;

/**
 * Move a conversation to the trash, or ask before deleting it if it could not be restored.
 * @param {Conversation} conversation
 */
export function deleteConversation(conversation) {
  if (boot.trash_days && !conversation.temporary) moveToTrash(conversation);
  else
    askForGood(t("Delete this conversation?"), titleOf(conversation), async () => {
      if (await attempt(() => remove(`/conversations/${conversation.id}`))) leave(conversation.id);
    });
}

/** @param {{title: string}} conversation */
export const titleOf = ({ title }) => title || t("New chat");

/** @param {Conversation} conversation */
async function moveToTrash({ id }) {
  const wasOpen = currentId.value === id;
  const title = nameOf(id);
  if (!(await attempt(() => post(`/conversations/${id}/trash`)))) return;
  leave(id);
  const undo = async () => {
    if ((await restore(id)) && wasOpen) goTo(id);
  };
  showToast(t("Moved to the trash: {title}", { title }), "plain", { name: t("Undo"), run: undo, about: id });
}

/** @param {string} id */
function leave(id) {
  const wasOpen = currentId.value === id;
  dispatch({ type: "conversation/forgotten", id });
  if (wasOpen) goTo(null, { replaces: true });
}

/**
 * Restore a conversation. Retry on a conflict, because a large one may still be moving to the trash.
 * @param {string} id @returns {Promise<boolean>}
 */
export async function restore(id) {
  for (let left = ATTEMPTS; ; left -= 1) {
    try {
      dispatch({ type: "conversation/put", conversation: await post(`/trash/${id}/restore`) });
      return true;
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 409 || left === 1) {
        showToast(errorText(error), "bad");
        return false;
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}

/** @param {Trashed} trashed */
export function askToDeleteNow(trashed) {
  const work = () => attempt(() => remove(`/trash/${trashed.id}`));
  askForGood(t("Delete for good?"), titleOf(trashed), work, openTrash);
}

export function askToEmpty() {
  const text = t("Every chat in the trash and what was remembered from them will be gone for good.");
  confirm(t("Empty the trash?"), text, () => attempt(() => remove("/trash")), openTrash);
}

export const openTrash = () => changeUi({ dialog: { kind: "trash" } });

/** @param {string} question @param {string} title @param {() => Promise<unknown>} work @param {() => void} [after] */
function askForGood(question, title, work, after) {
  confirm(question, t("“{title}” and what was remembered from it will be gone for good.", { title }), work, after);
}

/** @param {string} title @param {string} text @param {() => Promise<unknown>} work @param {() => void} [after] */
function confirm(title, text, work, after = () => {}) {
  const onConfirm = async () => {
    await work();
    after();
  };
  changeUi({ dialog: { kind: "confirm", title, text, action: t("Delete"), onConfirm } });
}

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
