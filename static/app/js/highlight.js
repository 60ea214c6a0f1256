/** Highlights code. Loads highlight.js when the first block needs it. */

import { sanitise } from "./sanitise.js";

/** @type {any} */
let hljs = null;

/** @returns {Promise<void>} */
export async function loadHighlighter() {
  hljs ??= (await import("@highlightjs/cdn-assets/es/highlight.min.js")).default;
}

/** @param {string} language */
export const canHighlight = (language) => Boolean(hljs?.getLanguage(language));

/**
 * Return highlighted code as trusted HTML, or null if it must be shown as plain text.
 * @param {string} code @param {string} language
 */
export function highlight(code, language) {
  if (!hljs || !canHighlight(language)) return null;
  return sanitise(hljs.highlight(code, { language, ignoreIllegals: true }).value);
}

/** @param {string} language as written after the fence @returns {string} its display name */
export function languageName(language) {
  if (!language) return "text";
  return hljs?.getLanguage(language)?.name ?? language;
}
