/** The selected conversations of the list; null while nobody selects. */

import { signal } from "@preact/signals";

export const selection = signal(/** @type {Set<string>|null} */ (null));

/** The row where a range begins. @type {string|null} */
let last = null;

/** @param {string[]} ids */
export const select = (ids) => {
  last = ids.at(-1) ?? null;
  selection.value = new Set(ids);
};

export const endSelection = () => {
  selection.value = null;
};

/** @param {string} id @param {string[]} [range] the list as shown: rows from the last one to `id` get the same state */
export function toggleSelected(id, range = []) {
  const ids = new Set(selection.value);
  const isOn = !ids.has(id);
  const [from, to] = [range.indexOf(last ?? ""), range.indexOf(id)].sort((a, b) => a - b);
  for (const one of from < 0 ? [id] : range.slice(from, to + 1)) isOn ? ids.add(one) : ids.delete(one);
  last = id;
  selection.value = ids;
}
