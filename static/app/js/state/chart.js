/** Days side by side: what was remembered, and the tokens that were used. Pure. */

/** @typedef {{day: string, entries: number, tokens: number}} DayBar */

/** @param {string} day @param {number} by */
function shiftDay(day, by) {
  const moved = new Date(`${day}T12:00:00Z`);
  moved.setUTCDate(moved.getUTCDate() + by);
  return moved.toISOString().slice(0, 10);
}

/**
 * The `count` days up to `today`, oldest first; a day of nothing is there too.
 * @param {{day: string, entry_count: number}[]} days
 * @param {{key: string, input_tokens: number, output_tokens: number}[]} usage by day
 * @param {string} today @param {number} count @returns {DayBar[]}
 */
export function barsOf(days, usage, today, count) {
  const entries = new Map(days.map((one) => [one.day, one.entry_count]));
  const tokens = new Map(usage.map((one) => [one.key, one.input_tokens + one.output_tokens]));
  return Array.from({ length: count }, (_, at) => {
    const day = shiftDay(today, at - count + 1);
    return { day, entries: entries.get(day) ?? 0, tokens: tokens.get(day) ?? 0 };
  });
}
