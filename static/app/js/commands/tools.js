/** Approves and denies tool calls, and reads results that were too large for the context. */

import { get, post, query } from "../api.js";
import { t } from "../i18n.js";
import { showToast } from "../state/store.js";
import { errorText } from "./conversations.js";

/**
 * @typedef {{text: string, total_chars: number|null, next_offset: number|null, content_url: string,
 *   mime_type: string}} OffloadPage
 */

/**
 * Decide a call that waits for consent. Its new state arrives as an event.
 * @param {string} runId @param {string} callId @param {boolean} isApproved
 */
export async function decideCall(runId, callId, isApproved) {
  try {
    await post(`/runs/${runId}/tools/${callId}/${isApproved ? "approve" : "deny"}`);
  } catch (error) {
    showToast(errorText(error) || t("Your decision could not be saved."), "bad");
  }
}

/** @param {string} conversationId @param {string} ref @param {number} offset @returns {Promise<OffloadPage>} */
export const readOffloaded = (conversationId, ref, offset) =>
  get(`/conversations/${conversationId}/offloads/${encodeURIComponent(ref)}${query({ offset })}`);
