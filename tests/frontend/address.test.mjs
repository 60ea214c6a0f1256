import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOfSource, placeIn } from "../../static/app/js/state/address.js";

test("a source leads to its message, its day or its conversation", () => {
  assert.equal(addressOfSource({ conversation_id: "c", message_id: "m" }), "/c/c#m-m");
  assert.equal(addressOfSource({ message_id: "m" }, "open"), "/c/open#m-m");
  assert.equal(addressOfSource({ day: "2026-11-21" }), "/memory?day=2026-11-21");
  assert.equal(addressOfSource({ conversation_id: "c" }), "/c/c");
  assert.equal(addressOfSource({}), "/memory");
});

test("an address names a conversation, and a message of it", () => {
  const named = (path, hash = "") => Object.values(placeIn({ pathname: path, hash }));
  assert.deepEqual(named("/c/c1", "#m-m1"), ["c1", "m1"]);
  assert.deepEqual(named("/c/c1", "#top"), ["c1", null]);
  assert.deepEqual(named("/c/c1"), ["c1", null]);
  assert.deepEqual(named("/", "#m-m1"), [null, null]);
  assert.deepEqual(named("/memory"), [null, null]);
});
