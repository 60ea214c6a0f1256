/** Bars for a chart of days: entries remembered and tokens used. Pure functions. */

/**
 * @typedef {{day: string, entry_count: number, input_tokens: number, output_tokens: number}} DayStats
 * @typedef {{day: string, entries: number, tokens: number}} DayBar
 */

/** @param {string} day @param {number} by */
function shiftDay(day, by) {
  const moved = new Date(`${day}T12:00:00Z`);
  moved.setUTCDate(moved.getUTCDate() + by);
  return moved.toISOString().slice(0, 10);
}

/**
 * Return the `count` days up to `today`, oldest first, including days without data.
 * @param {DayStats[]} stats @param {string} today @param {number} count @returns {DayBar[]}
 */
export function barsOf(stats, today, count) {
  const known = new Map(stats.map((one) => [one.day, one]));
  return Array.from({ length: count }, (_, at) => {
    const day = shiftDay(today, at - count + 1);
    const { entry_count: entries = 0, input_tokens: read = 0, output_tokens: written = 0 } = known.get(day) ?? {};
    return { day, entries, tokens: read + written };
  });
}
