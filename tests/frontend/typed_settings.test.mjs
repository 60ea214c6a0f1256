import assert from "node:assert/strict";
import { test } from "node:test";
import { readOneOff } from "../../static/app/js/state/typed_settings.js";

test("settings for one compaction stand in front of what to keep", () => {
  assert.deepEqual(readOneOff("keep_recent=4 strategy=structured the dates"), { keep_recent: 4, strategy: "structured", keep: "the dates" });
  assert.deepEqual(readOneOff("summary_max_tokens=300"), { summary_max_tokens: 300 });
  assert.deepEqual(readOneOff("what keep_recent=4 means"), { keep: "what keep_recent=4 means" });
  assert.deepEqual(readOneOff(""), {});
});

test("a value that is no whole number reaches the service as it was typed, to be refused", () => {
  assert.deepEqual(readOneOff("keep_recent=abc x"), { keep_recent: "abc", keep: "x" });
  assert.deepEqual(readOneOff("keep_recent=2.5"), { keep_recent: 2.5 });
  assert.deepEqual(readOneOff("keep_recent=-1 x"), { keep_recent: -1, keep: "x" });
  assert.deepEqual(readOneOff("strategy= x"), { strategy: "", keep: "x" });
});
