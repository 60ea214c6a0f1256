import assert from "node:assert/strict";
import { test } from "node:test";
import { barsOf } from "../../static/app/js/state/chart.js";

test("every day has its bars, also one on which nothing happened", () => {
  const stats = [
    { day: "2026-01-01", entry_count: 9, input_tokens: 1, output_tokens: 1 },
    { day: "2026-10-31", entry_count: 0, input_tokens: 10, output_tokens: 5 },
    { day: "2026-11-01", entry_count: 3, input_tokens: 0, output_tokens: 0 },
  ];
  assert.deepEqual(barsOf(stats, "2026-11-01", 3), [
    { day: "2026-10-30", entries: 0, tokens: 0 },
    { day: "2026-10-31", entries: 0, tokens: 15 },
    { day: "2026-11-01", entries: 3, tokens: 0 },
  ]);
});
