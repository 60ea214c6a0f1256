/** Settings of memory, and the entries that wait for approval. */

import { get, patch, post, query } from "../api.js";
import { showToast } from "../state/store.js";
import { memorySettings, waitingCount } from "../state/memory.js";
import { errorText } from "./conversations.js";

/** @typedef {import("../state/memory.js").MemorySettings} MemorySettings */
/** @typedef {import("./memory.js").Entry} Entry */

const COUNTED = 100;

export async function loadMemorySettings() {
  try {
    memorySettings.value = await get("/memory/settings");
    waitingCount.value = (await waitingEntries(null, COUNTED)).items.length;
  } catch (error) {
    showToast(errorText(error), "bad");
  }
}

/** @param {Partial<MemorySettings>} change */
export async function changeMemorySettings(change) {
  try {
    memorySettings.value = await patch("/memory/settings", change);
  } catch (error) {
    // Draw the switch again, because it shows the refused value.
    if (memorySettings.value) memorySettings.value = { ...memorySettings.value };
    showToast(errorText(error), "bad");
  }
}

/**
 * @param {string|null} cursor @param {number} [limit] @returns {Promise<{items: Entry[], next_cursor: string|null}>}
 */
export const waitingEntries = (cursor, limit) => get(`/memory/review${query({ cursor, limit })}`);

/** @param {string} id @param {boolean} isApproved */
export const decideEntry = (id, isApproved) => post(`/memory/review/${id}/${isApproved ? "approve" : "reject"}`);
