import assert from "node:assert/strict";
import { test } from "node:test";
import { shiftMonth, weeksOf } from "../../static/app/js/state/calendar.js";

test("weeks begin on Monday and hold every day of the month once", () => {
  const weeks = weeksOf("2026-11");
  assert.deepEqual(weeks[0], [null, null, null, null, null, null, "2026-11-01"]);
  assert.ok(weeks.every((week) => week.length === 7));
  const days = weeks.flat().filter(Boolean);
  assert.equal(days.length, 30);
  assert.equal(new Set(days).size, 30);
  assert.equal(weeksOf("2028-02").flat().filter(Boolean).length, 29);
});

test("months move over the year's end", () => {
  assert.deepEqual([shiftMonth("2026-12", 1), shiftMonth("2026-01", -1), shiftMonth("2026-05", -17)], ["2027-01", "2025-12", "2024-12"]);
});
