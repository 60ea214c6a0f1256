import assert from "node:assert/strict";
import { test } from "node:test";
import { conversation, request, settled } from "./page.mjs";

const { sendDraft } = await import("../../../static/app/js/commands/messages.js");
const { goTo } = await import("../../../static/app/js/commands/navigation.js");
const { answerOfCommand, draftText } = await import("../../../static/app/js/state/draft.js");
const { currentId, dispatch } = await import("../../../static/app/js/state/store.js");

test("“Settings of this chat” do not stand below another chat", async () => {
  for (const id of ["b1", "a1"]) {
    dispatch({ type: "conversation/opened", id });
    dispatch({ type: "thread/loaded", conversation: conversation(id), page: { items: [], next_cursor: null }, compactions: [] });
  }
  draftText.value = "/config";
  sendDraft();
  (await request("GET", /conversations\/a1$/)).answer(conversation("a1", { context_policy: { keep_recent: 4 } }));
  await settled();
  assert.equal(answerOfCommand.value.title, "Settings of this chat");
  goTo("b1");
  await settled();
  assert.equal(currentId.value, "b1");
  assert.equal(answerOfCommand.value, null);
});

test("a command that failed is in the box again, unless something else was begun", async () => {
  for (const typed of ["", "Something else"]) {
    draftText.value = "/compact keep every number of the second table";
    sendDraft();
    const asked = await request("POST", /b1\/compact$/);
    draftText.value = typed;
    asked.answer({ error: { code: "unavailable", message: "Not now." } }, 503);
    await settled();
    assert.equal(answerOfCommand.value.text, "Not now.");
    assert.equal(draftText.value, typed || "/compact keep every number of the second table");
  }
});
