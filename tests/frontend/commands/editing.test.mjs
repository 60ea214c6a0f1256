import assert from "node:assert/strict";
import { test } from "node:test";
import { conversation, request, settled } from "./page.mjs";

const { loadOlder } = await import("../../../static/app/js/commands/pages.js");
const { goTo, goToMessage } = await import("../../../static/app/js/commands/navigation.js");
const { editedId } = await import("../../../static/app/js/state/draft.js");
const { currentThread, dispatch } = await import("../../../static/app/js/state/store.js");

const messages = (first, count) =>
  Array.from({ length: count }, (_, n) => ({ id: `m${first + n}`, role: "user", content: "Words", position: first + n, parent: null, created_at: "2026-01-01T00:00:00Z" }));

for (const id of ["b1", "a1"]) {
  dispatch({ type: "conversation/opened", id });
  dispatch({ type: "thread/loaded", conversation: conversation(id), page: { items: messages(60, 280), next_cursor: "60" }, compactions: [] });
}

test("a link to a message of the same chat does not end an edit; another chat does", () => {
  editedId.value = "m300";
  goToMessage("a1", "m100");
  assert.equal(editedId.value, "m300");
  goTo("b1");
  assert.equal(editedId.value, null);
  goTo("a1");
});

test("what is being edited stays loaded however far its writer scrolls back", async () => {
  editedId.value = "m339";
  const loading = loadOlder("a1", true);
  (await request("GET", /before=60/)).answer({ items: messages(0, 60), next_cursor: null });
  await loading;
  await settled();
  assert.equal(currentThread.value.ids.length, 340);
});
