/** What the palette lists for the words typed so far. Pure. */

/**
 * @typedef {{id: string, group: "Actions"|"Chats"|"Messages", label: string, icon: string, note?: string, excerpt?: import("../search/commands.js").Span[], onChoose: () => void}} Choice
 */

/** Each of the words stands in the label. @param {Choice[]} choices @param {string} query */
export function matching(choices, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return choices.filter(({ label }) => words.every((word) => label.toLowerCase().includes(word)));
}

/** In the order they are shown, with none of a group apart from the others. @param {Choice[]} choices */
export const grouped = (choices) =>
  [...new Set(choices.map(({ group }) => group))].map((name) => ({ name, items: choices.filter(({ group }) => group === name) }));

/** Where a key leads, round and round; null: it leads nowhere. @param {string} key @param {number} at @param {number} count */
export function stepTo(key, at, count) {
  if (count === 0) return null;
  const to = { ArrowDown: at + 1, ArrowUp: at - 1 + count }[key];
  return to === undefined ? null : to % count;
}
