/** What the palette lists for the words typed so far. Pure functions. */

/**
 * @typedef {{id: string, group: "Actions"|"Chats"|"Messages", label: string, icon: string, note?: string,
 *   excerpt?: import("../search/commands.js").Span[], onChoose: () => void}} Choice
 */

/** Return the choices whose label contains each of the words. @param {Choice[]} choices @param {string} query */
export function matching(choices, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return choices.filter(({ label }) => words.every((word) => label.toLowerCase().includes(word)));
}

/** Group the choices, in the order in which each group first appears. @param {Choice[]} choices */
export const grouped = (choices) =>
  [...new Set(choices.map(({ group }) => group))].map((name) => ({ name, items: choices.filter(({ group }) => group === name) }));

/**
 * Return the index that an arrow key leads to, wrapping around; null for another key or an empty list.
 * @param {string} key @param {number} at @param {number} count
 */
export function stepTo(key, at, count) {
  if (count === 0) return null;
  const to = { ArrowDown: at + 1, ArrowUp: at - 1 + count }[key];
  return to === undefined ? null : to % count;
}
