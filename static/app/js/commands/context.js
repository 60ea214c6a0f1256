/** How full the context is, what the model sees, and compacting by hand. */

import { get, post } from "../api.js";
import { t } from "../i18n.js";
import { dispatch, showToast } from "../state/store.js";
import { sentenceOf } from "./conversations.js";

/** @param {string} id @returns {Promise<any>} the inspector's view, or null */
export async function loadContext(id) {
  try {
    const context = await post(`/conversations/${id}/context`);
    dispatch({ type: "context/loaded", id, context });
    return context;
  } catch {
    // The ring is a hint; the conversation works without it.
    return null;
  }
}

/** @param {string} id */
export async function compactNow(id) {
  try {
    await post(`/conversations/${id}/compact`);
    showToast(t("Summarizing earlier messages…"));
  } catch (error) {
    showToast(sentenceOf(error), "bad");
  }
}

/** Summaries are not in the events. @param {string} id */
export async function loadCompactions(id) {
  try {
    const { items } = await get(`/conversations/${id}/compactions`);
    dispatch({ type: "compactions/loaded", id, compactions: items });
  } catch (error) {
    showToast(sentenceOf(error), "bad");
  }
}
