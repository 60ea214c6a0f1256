import assert from "node:assert/strict";
import { test } from "node:test";
import { beginningOf, brief } from "../../static/app/js/format.js";

test("a sentence is not cut in the middle of a sign", () => {
  assert.ok(brief(`${"a".repeat(46)}😀 and so on`).isWellFormed());
  assert.ok(beginningOf(`${"a".repeat(79)}😀 and so on`).isWellFormed());
});
