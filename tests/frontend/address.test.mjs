import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOfSource } from "../../static/app/js/state/address.js";

test("a source leads to its message, its day or its conversation", () => {
  assert.equal(addressOfSource({ conversation_id: "c", message_id: "m" }), "/c/c#m-m");
  assert.equal(addressOfSource({ message_id: "m" }, "open"), "/c/open#m-m");
  assert.equal(addressOfSource({ day: "2026-11-21" }), "/memory?day=2026-11-21");
  assert.equal(addressOfSource({ conversation_id: "c" }), "/c/c");
  assert.equal(addressOfSource({}), "/memory");
});
