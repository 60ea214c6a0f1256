import assert from "node:assert/strict";
import { test } from "node:test";
import { plural, t } from "../../static/app/js/i18n.js";

test("values fill their places, numbers as the language writes them", () => {
  assert.equal(t("{used} of {budget} tokens", { used: 1234, budget: "2k" }), "1,234 of 2k tokens");
  assert.equal(t("{nobody} knows"), "{nobody} knows");
});

test("a number takes the form of its plural", () => {
  const entries = (n) => plural(n, "{n} entry of {day}", "{n} entries of {day}", { day: "Monday" });
  assert.deepEqual([0, 1, 2, 1000].map(entries), [
    "0 entries of Monday",
    "1 entry of Monday",
    "2 entries of Monday",
    "1,000 entries of Monday",
  ]);
});
