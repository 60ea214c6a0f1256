/** Which conversations of the list are selected; null while nobody selects. */

import { signal } from "@preact/signals";

export const selection = signal(/** @type {Set<string>|null} */ (null));

/** @param {string[]} ids */
export const select = (ids) => {
  selection.value = new Set(ids);
};

export const endSelection = () => {
  selection.value = null;
};

/** @param {string} id */
export function toggleSelected(id) {
  const ids = new Set(selection.value);
  if (!ids.delete(id)) ids.add(id);
  selection.value = ids;
}
