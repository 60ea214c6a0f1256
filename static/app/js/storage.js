/** What this browser remembers: drafts and preferences. Never a token. */

const PREFIX = "palimpsest.";

/** Private windows and full disks refuse; then nothing is remembered. @param {string} name */
export function recall(name) {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

/** @param {string} name @param {string|null} value */
export function remember(name, value) {
  try {
    if (value === null || value === "") localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, value);
  } catch {
    return;
  }
}

/** @param {string|null} conversationId */
const draftName = (conversationId) => `draft.${conversationId ?? "new"}`;

/** @param {string|null} conversationId */
export const readDraft = (conversationId) => recall(draftName(conversationId)) ?? "";

/** @param {string|null} conversationId @param {string} text */
export const writeDraft = (conversationId, text) => remember(draftName(conversationId), text);
