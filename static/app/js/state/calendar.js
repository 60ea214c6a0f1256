/** Months of a calendar. A day is `2026-11-21`, a month `2026-11`; neither has a time zone. Pure functions. */

/** @param {string} day */
export const monthOf = (day) => day.slice(0, 7);

/** @param {number} number */
const two = (number) => String(number).padStart(2, "0");

/** @param {string} month @param {number} by */
export function shiftMonth(month, by) {
  const moved = Number(month.slice(0, 4)) * 12 + Number(month.slice(5)) - 1 + by;
  return `${Math.floor(moved / 12)}-${two((moved % 12) + 1)}`;
}

/**
 * Return the weeks of a month, from Monday on, with null for days of other months.
 * @param {string} month @returns {(string|null)[][]}
 */
export function weeksOf(month) {
  const year = Number(month.slice(0, 4));
  const index = Number(month.slice(5)) - 1;
  const length = new Date(Date.UTC(year, index + 1, 0)).getUTCDate();
  const before = (new Date(Date.UTC(year, index, 1)).getUTCDay() + 6) % 7;
  const cells = [...Array(before).fill(null), ...Array.from({ length }, (_, at) => `${month}-${two(at + 1)}`)];
  const weeks = [];
  for (let at = 0; at < cells.length; at += 7) {
    const week = cells.slice(at, at + 7);
    weeks.push([...week, ...Array(7 - week.length).fill(null)]);
  }
  return weeks;
}
