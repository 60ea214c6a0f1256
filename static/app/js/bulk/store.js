/** Which conversations of the list are selected; null while nobody selects. */

import { signal } from "@preact/signals";

export const selection = signal(/** @type {Set<string>|null} */ (null));

/** The row that a range begins at. @type {string|null} */
let last = null;

/** @param {string[]} ids */
export const select = (ids) => {
  last = ids.at(-1) ?? null;
  selection.value = new Set(ids);
};

export const endSelection = () => {
  selection.value = null;
};

/** @param {string} id @param {string[]} [range] the list as it is shown: all from the last one to this become as this */
export function toggleSelected(id, range = []) {
  const ids = new Set(selection.value);
  const isOn = !ids.has(id);
  const [from, to] = [range.indexOf(last ?? ""), range.indexOf(id)].sort((a, b) => a - b);
  for (const one of from < 0 ? [id] : range.slice(from, to + 1)) isOn ? ids.add(one) : ids.delete(one);
  last = id;
  selection.value = ids;
}
