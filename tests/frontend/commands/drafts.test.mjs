import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { asked, conversation, request, settled } from "./page.mjs";

const { sendDraft } = await import("../../../static/app/js/commands/messages.js");
const { goTo } = await import("../../../static/app/js/commands/navigation.js");
const { draftText, isCreating } = await import("../../../static/app/js/state/draft.js");
const { currentId, dispatch } = await import("../../../static/app/js/state/store.js");
const { readDraft, writeDraft } = await import("../../../static/app/js/storage.js");

/** As the composer does on each letter. */
function type(text) {
  draftText.value = text;
  writeDraft(currentId.value, text);
}

function openAt(id) {
  const loaded = conversation(id);
  dispatch({ type: "conversation/put", conversation: loaded });
  dispatch({ type: "conversation/opened", id });
  dispatch({ type: "thread/loaded", conversation: loaded, page: { items: [], next_cursor: null }, compactions: [] });
  draftText.value = "";
}

beforeEach(() => {
  asked.splice(0);
  localStorage.removeItem("palimpsest.draft.u1.new");
});

test("what is typed while a message is on its way is there after a look at another chat", async () => {
  openAt("a1");
  openAt("b1");
  openAt("a1");
  type("The first");
  sendDraft();
  const sending = await request("POST", /a1\/messages/);
  type("The second, half written");
  goTo("b1");
  sending.answer({ message_id: "m1", run_id: "r1" }, 202);
  await settled();
  goTo("a1");
  assert.equal(draftText.value, "The second, half written");
});

test("a message that could not be sent is not lost where its writer typed on and left", async () => {
  openAt("a2");
  openAt("b2");
  openAt("a2");
  type("A long question that took half an hour");
  sendDraft();
  const sending = await request("POST", /a2\/messages/);
  type("and");
  goTo("b2");
  sending.answer({ error: { code: "rate_limited", message: "Too fast." } }, 429);
  await settled();
  goTo("a2");
  assert.match(draftText.value, /half an hour/);
});

test("a message that could not be sent, and came back before what was typed on, survives a reload", async () => {
  openAt("a3");
  type("A long question that took half an hour");
  sendDraft();
  const sending = await request("POST", /a3\/messages/);
  type("and");
  sending.answer({ error: { code: "rate_limited", message: "Too fast." } }, 429);
  await settled();
  assert.match(draftText.value, /half an hour/, "it is in the box");
  assert.match(readDraft("a3"), /half an hour/, "but not where a reload, or a look at another chat, finds it");
});

test("what is typed while a new chat is being made is not lost", async () => {
  goTo(null);
  type("Hello");
  sendDraft();
  const making = await request("POST", /\/conversations$/);
  assert.equal(isCreating.value, true);
  type("Hello, and one thing more");
  making.answer(conversation("n1"), 201);
  await settled();
  const sent = asked.find(({ address, method }) => method === "POST" && /n1\/messages/.test(address));
  assert.match(`${sent?.body.content} ${draftText.value} ${readDraft("n1")} ${readDraft(null)}`, /one thing more/);
});

test("a new chat that cannot be made does not put its words into the chat that is open by then", async () => {
  openAt("b5");
  goTo(null);
  type("For nobody but the new chat");
  sendDraft();
  const making = await request("POST", /\/conversations$/);
  goTo("b5");
  making.answer({ error: { code: "unavailable", message: "Not now." } }, 503);
  await settled();
  assert.equal(currentId.value, "b5");
  assert.equal(draftText.value, "");
});
