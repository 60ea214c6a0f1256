/** Messages that wait for the model's next step: editing, taking back, and sending after a stop. */

import { brief } from "../format.js";
import { t } from "../i18n.js";
import { patch, postAsync, remove } from "../api.js";
import { addToDraft, stopEditing } from "../state/draft.js";
import { currentId, dispatch, showToast } from "../state/store.js";
import { tell } from "./messages.js";

/**
 * Save an edited message with its attachments.
 * @param {import("../state/types.js").ViewMessage} message @param {string} content
 */
export async function editQueued({ id, images, files }, content) {
  const attachments = [...images, ...files].map((part) => part.file_id);
  const chat = currentId.value;
  const isSaved = await tell(async () => {
    const message = await patch(`/conversations/${chat}/messages/${id}`, { content, attachments });
    dispatch({ type: "message.edited", conversation_id: chat, message });
  });
  if (isSaved) stopEditing(id);
}

/** Send all messages that were held when the answer was stopped. */
export const sendHeld = () => tell(() => postAsync(`/conversations/${currentId.value}/queue/send`, {}));

/**
 * Delete a queued message. The toast offers to put its text into the draft.
 * @param {string} messageId @param {string} text
 */
export async function withdrawQueued(messageId, text) {
  const chat = currentId.value;
  if (!(await tell(() => remove(`/conversations/${chat}/messages/${messageId}`)))) return;
  showToast(t("Taken back: {text}", { text: brief(text) }), "plain", { name: t("Undo"), run: () => addToDraft(chat, text) });
}
