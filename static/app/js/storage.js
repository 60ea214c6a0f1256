/** What this browser remembers: preferences, and the drafts of who is signed in. Never a token. */

import { boot } from "./boot.js";

const PREFIX = "palimpsest.";

/** What the browser did not store, or is not to store any longer: known until this page is left. @type {Map<string, string>} */
const onlyHere = new Map();

/** @param {string} name @returns {string|null} */
export function recall(name) {
  try {
    return onlyHere.get(name) ?? localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

/** Private windows and full disks refuse; what was stored before stays, for it is most of a draft. @param {string} name @param {string|null} value */
export function remember(name, value) {
  onlyHere.delete(name);
  try {
    if (value === null || value === "") localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, value);
  } catch {
    if (value) onlyHere.set(name, value);
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

/** The chat was deleted: its draft is stored no longer, and there again where the deletion is undone at once. @param {string} conversationId */
export function unstoreDraft(conversationId) {
  for (const name of ["", ".unsent", ".files"].map((ending) => draftName(conversationId) + ending)) {
    const value = recall(name);
    remember(name, null);
    if (value) onlyHere.set(name, value);
  }
}

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
