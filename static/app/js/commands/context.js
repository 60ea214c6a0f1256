/** How full the context is, what the model sees, and compacting on request. */

import { get, patch, post } from "../api.js";
import { exact } from "../format.js";
import { plural, t } from "../i18n.js";
import { answerOfCommand } from "../state/draft.js";
import { currentId, dispatch, showToast } from "../state/store.js";
import { errorText } from "./conversations.js";

/** @param {string} id @returns {Promise<any>} the inspector's view, or null on failure */
export async function loadContext(id) {
  try {
    const context = await post(`/conversations/${id}/context`);
    dispatch({ type: "context/loaded", id, context });
    return context;
  } catch {
    // The ring is only a hint; the conversation works without it.
    return null;
  }
}

/**
 * @param {string} id @param {string} keep what the summary should keep, in the user's words
 * @returns {Promise<boolean>} whether the summary is being written
 */
export async function compactNow(id, keep) {
  try {
    await post(`/conversations/${id}/compact`, keep ? { keep } : undefined);
    showToast(t("Summarizing earlier messages…"));
    return true;
  } catch (error) {
    showToast(errorText(error), "bad");
    return false;
  }
}

/** Load the compactions with their summaries, which events do not contain. @param {string} id */
export async function readCompactions(id) {
  const { items } = await get(`/conversations/${id}/compactions`);
  dispatch({ type: "compactions/loaded", id, compactions: items });
}

/** Load the compactions after a change. The change stands even if this fails. @param {string} id */
export const loadCompactions = (id) => readCompactions(id).catch((error) => showToast(errorText(error), "bad"));

/**
 * Undo a compaction, so that its messages are in context again. The toast offers to redo it.
 * @param {import("../state/types.js").Compaction} compaction
 */
export async function undoCompaction({ id: compactionId }) {
  const id = currentId.value;
  if (id === null) return;
  try {
    await post(`/conversations/${id}/compactions/${compactionId}/undo`);
    await loadCompactions(id);
    const redo = async () => {
      await post(`/conversations/${id}/compactions/${compactionId}/redo`);
      await loadCompactions(id);
    };
    showToast(t("The summary was undone: its messages are in context again."), "plain", { name: t("Undo"), run: redo, about: compactionId });
  } catch (error) {
    showToast(errorText(error), "bad");
  }
}

/**
 * @param {import("../state/types.js").Compaction} compaction @param {string} summary
 * @returns {Promise<boolean>} whether it was saved
 */
export async function editSummary({ id: compactionId, summary: before }, summary) {
  const id = currentId.value;
  if (id === null) return false;
  const write = async (/** @type {string} */ words) => {
    await patch(`/conversations/${id}/compactions/${compactionId}`, { summary: words });
    await loadCompactions(id);
  };
  try {
    await write(summary);
    if (before) showToast(t("The summary was changed."), "plain", { name: t("Undo"), run: () => write(before), about: compactionId });
    return true;
  } catch (error) {
    showToast(errorText(error), "bad");
    return false;
  }
}

/**
 * Show what a compaction would cover and keep. It starts only when the user confirms.
 * @param {string} id @param {string} keep
 */
export async function previewCompaction(id, keep) {
  try {
    const draft = await post(`/conversations/${id}/compact`, { preview: true });
    answerOfCommand.value = {
      title: t("Compaction, previewed"),
      rows: [
        [t("Summarized"), plural(draft.message_count, "{n} message", "{n} messages")],
        [t("Kept as they are"), plural(draft.kept_count, "{n} message", "{n} messages")],
        [t("Tokens"), `${exact(draft.tokens_before)} → ${exact(draft.tokens_after)}`],
        [t("Draft, without a model"), draft.summary],
      ],
      action: { name: t("Summarize"), run: async () => void (await compactNow(id, keep)) },
    };
  } catch (error) {
    showToast(errorText(error), "bad");
  }
}
