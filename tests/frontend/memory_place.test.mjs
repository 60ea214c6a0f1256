import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOfPlace, NO_SEARCH, placeOf } from "../../static/app/js/state/memory.js";

test("a place of the memory page is its address, and back", () => {
  const places = [
    { view: "days", day: null, search: NO_SEARCH },
    { view: "days", day: "2026-11-21", search: NO_SEARCH },
    { view: "profile", day: null, search: NO_SEARCH },
    { view: "days", day: null, search: { q: "the boat", from: "2026-01-01", to: "", conversation: "c1" } },
  ];
  for (const place of places) assert.deepEqual(placeOf(addressOfPlace(place).slice("/memory".length)), place);
});

test("an address that means nothing shows the days", () => {
  assert.deepEqual(placeOf("?view=moon"), { view: "days", day: null, search: NO_SEARCH });
});
