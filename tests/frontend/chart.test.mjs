import assert from "node:assert/strict";
import { test } from "node:test";
import { barsOf } from "../../static/app/js/state/chart.js";

test("every day has its bars, also one on which nothing happened", () => {
  const days = [{ day: "2026-11-01", entry_count: 3 }, { day: "2026-01-01", entry_count: 9 }];
  const usage = [{ key: "2026-10-31", input_tokens: 10, output_tokens: 5 }];
  assert.deepEqual(barsOf(days, usage, "2026-11-01", 3), [
    { day: "2026-10-30", entries: 0, tokens: 0 },
    { day: "2026-10-31", entries: 0, tokens: 15 },
    { day: "2026-11-01", entries: 3, tokens: 0 },
  ]);
});
