/** What this browser remembers: preferences, and the drafts of who is signed in. Never a token. */

import { boot } from "./boot.js";

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

const DRAFTS = "draft.";
const ownDrafts = `${DRAFTS}${boot.user?.id}.`;

/** @param {string|null} conversationId */
const draftName = (conversationId) => `${ownDrafts}${conversationId ?? "new"}`;

/** @param {string|null} conversationId */
export const readDraft = (conversationId) => recall(draftName(conversationId)) ?? "";

/** @param {string|null} conversationId @param {string} text */
export const writeDraft = (conversationId, text) => remember(draftName(conversationId), text);

/** What was taken from it and is not acknowledged. @param {string|null} conversationId @returns {import("./state/draft.js").Unsent|null} */
export function readUnsent(conversationId) {
  try {
    return JSON.parse(recall(`${draftName(conversationId)}.unsent`) ?? "null");
  } catch {
    return null;
  }
}

/** @param {string|null} conversationId @param {import("./state/draft.js").Unsent|null} unsent */
export const writeUnsent = (conversationId, unsent) =>
  remember(`${draftName(conversationId)}.unsent`, unsent && JSON.stringify(unsent));

/** What is attached to it, uploaded already. @param {string|null} conversationId @returns {import("./state/types.js").Attached[]} */
export function readDraftFiles(conversationId) {
  try {
    return JSON.parse(recall(`${draftName(conversationId)}.files`) ?? "[]");
  } catch {
    return [];
  }
}

/** @param {string|null} conversationId @param {import("./state/types.js").Attached[]} files */
export const writeDraftFiles = (conversationId, files) =>
  remember(`${draftName(conversationId)}.files`, files.length ? JSON.stringify(files) : null);

/** Remove the drafts that this browser keeps, at sign-out all of them. @param {{exceptOwn?: boolean}} [which] */
export function removeDrafts({ exceptOwn = false } = {}) {
  try {
    for (const key of Object.keys(localStorage)) {
      const isOwn = key.startsWith(PREFIX + ownDrafts);
      if (key.startsWith(PREFIX + DRAFTS) && !(exceptOwn && isOwn)) localStorage.removeItem(key);
    }
  } catch {
    return;
  }
}
