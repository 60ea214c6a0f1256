/** Undoes what was just remembered from the open conversation. */

import { remove } from "../api.js";
import { t } from "../i18n.js";
import { currentId, dispatch, showToast } from "../state/store.js";
import { errorText } from "./conversations.js";

/** @param {string} entryId */
export async function undoRemembering(entryId) {
  const id = currentId.value;
  try {
    await remove(`/memory/entries/${entryId}`);
    dispatch({ type: "memory/undone", id, entryId });
    showToast(t("It is forgotten."));
  } catch (error) {
    showToast(errorText(error), "bad");
  }
}
