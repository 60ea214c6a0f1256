/** Keeping a message in context, or forgetting it for good. */

import { patch } from "../api.js";
import { t } from "../i18n.js";
import { changeUi, currentId, dispatch, showToast } from "../state/store.js";
import { errorText } from "./conversations.js";

/** @param {string} messageId @param {boolean} pinned */
export async function pinMessage(messageId, pinned) {
  const id = currentId.value;
  try {
    const message = await patch(`/conversations/${id}/messages/${messageId}`, { pinned });
    dispatch({ type: "message.pinned", conversation_id: id, message });
    showToast(pinned ? t("The message stays in context.") : t("The message can leave the context."));
  } catch (error) {
    showToast(errorText(error), "bad");
  }
}

/** @param {string} messageId */
export function askToForgetMessage(messageId) {
  const dialog = {
    kind: "forget",
    title: t("Forget this message?"),
    text: t("Its words will be gone for good: here, in summaries, in memory and in the search. It will not be learned again."),
    forgetTarget: { message_id: messageId },
    onDone: () => {},
  };
  changeUi({ dialog });
}
