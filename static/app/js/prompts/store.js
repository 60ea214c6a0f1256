/** The user's prompts and those that operators offer, once they are loaded. */

import { signal } from "@preact/signals";
import { get } from "../api.js";

/** @typedef {{id: string, name: string, about: string, text: string, is_mine: boolean}} Prompt */

export const prompts = signal(/** @type {Prompt[]} */ ([]));

/** @type {Promise<void>|null} */
let loading = null;

export async function loadPrompts() {
  prompts.value = (await get("/prompts")).items;
}

/**
 * Load the prompts when the first slash is typed, as most chats need none. After a failure, the next slash tries again.
 */
export function wantPrompts() {
  loading ??= loadPrompts().catch(() => {
    loading = null;
  });
}

/** Return the prompts that contain each of the words in their name, purpose or text. @param {string} typed */
export function promptsWith(typed) {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  return prompts.value.filter(({ name, about, text }) => {
    const all = `/${name} ${about} ${text}`.toLowerCase();
    return words.every((word) => all.includes(word));
  });
}

/**
 * Return the prompts that match. The user's own prompt replaces an operator's one of the same name.
 * @param {string} typed `/…` @returns {Prompt[]}
 */
export function promptsFor(typed) {
  const start = typed.slice(1).toLowerCase();
  const found = prompts.value.filter(({ name }) => name.startsWith(start));
  return found.filter((one) => one.is_mine || !found.some(({ name, is_mine: isMine }) => isMine && name === one.name));
}
