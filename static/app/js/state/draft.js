/** What stands in the composer: text, uploads on their way, and what was not sent. */

import { signal } from "@preact/signals";

/**
 * @typedef {{key: string, name: string, preview: string, share: number, error: string,
 *   attached: import("./types.js").Attached|null, abort: AbortController}} Upload
 * @typedef {{clientId: string, text: string, fileIds: string, reason: string}} NotSent
 */

export const draftText = signal("");
export const uploads = signal(/** @type {Upload[]} */ ([]));
export const notSent = signal(/** @type {NotSent|null} */ (null));

/** The conversation of a new chat is being made; until then a second Send does nothing. */
export const isCreating = signal(false);

/** @param {string} key @param {Partial<Upload>} news */
export function changeUpload(key, news) {
  uploads.value = uploads.value.map((upload) => (upload.key === key ? { ...upload, ...news } : upload));
}

/** @param {string} key */
export function dropUpload(key) {
  const upload = uploads.value.find((one) => one.key === key);
  upload?.abort.abort();
  if (upload) URL.revokeObjectURL(upload.preview);
  uploads.value = uploads.value.filter((one) => one.key !== key);
}
