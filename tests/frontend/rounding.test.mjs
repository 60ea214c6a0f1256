import assert from "node:assert/strict";
import { test } from "node:test";
import { formatBytes, formatTokens } from "../../static/app/js/format.js";

test("what is rounded up to the next unit is written in it", () => {
  assert.equal(formatTokens(999_999), "1.0M");
  assert.equal(formatBytes(1024 ** 2 - 1), "1.0 MB");
});
