/** What waits on the server for the model's next step: said in other words, or taken back. */

import { patch, remove } from "../api.js";
import { editedId } from "../state/draft.js";
import { currentId, dispatch } from "../state/store.js";
import { tell } from "./messages.js";

/** With what is attached to it. @param {import("../state/types.js").ViewMessage} message @param {string} content */
export async function editQueued({ id, images, files }, content) {
  const attachments = [...images, ...files].map((part) => part.file_id);
  const chat = currentId.value;
  const isSaved = await tell(async () => {
    const message = await patch(`/conversations/${chat}/messages/${id}`, { content, attachments });
    dispatch({ type: "message.edited", conversation_id: chat, message });
  });
  if (isSaved && editedId.value === id) editedId.value = null;
}

/** @param {string} messageId */
export const takeBack = (messageId) => tell(() => remove(`/conversations/${currentId.value}/messages/${messageId}`));
