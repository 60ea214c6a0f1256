/** Values in this browser's storage: preferences, and the drafts of the signed-in user. Never a token. */

import { boot } from "./boot.js";

const PREFIX = "palimpsest.";

/**
 * Values that the browser did not store or must not store any more, kept until the page is left.
 * @type {Map<string, string>}
 */
const onlyHere = new Map();

/** @param {string} name @returns {string|null} */
export function recall(name) {
  try {
    return onlyHere.get(name) ?? localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

/**
 * Store or remove a value. If the browser refuses, keep the previous value, which is most of a draft.
 * @param {string} name @param {string|null} value
 */
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

/**
 * Return the message that was sent from this draft and is not acknowledged yet.
 * @param {string|null} conversationId @returns {import("./state/draft.js").Unsent|null}
 */
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

/**
 * Return the uploaded files that are attached to a draft.
 * @param {string|null} conversationId @returns {import("./state/types.js").Attached[]}
 */
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

/**
 * Remove a deleted chat's draft from storage, but keep it in memory in case the deletion is undone at once.
 * @param {string} conversationId
 */
export function unstoreDraft(conversationId) {
  for (const name of ["", ".unsent", ".files"].map((ending) => draftName(conversationId) + ending)) {
    const value = recall(name);
    remember(name, null);
    if (value) onlyHere.set(name, value);
  }
}

/**
 * Remove the drafts in this browser, with `exceptOwn` only those of other users.
 * @param {{exceptOwn?: boolean}} [which]
 */
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
