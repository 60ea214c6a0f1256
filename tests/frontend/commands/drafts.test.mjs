import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { asked, conversation, request, settled } from "./page.mjs";

const { sendDraft } = await import("../../../static/app/js/commands/messages.js");
const { goTo } = await import("../../../static/app/js/commands/navigation.js");
const { addUploads, branchAfter, changeDraft, draftText, isCreating, notSent, uploaded } = await import("../../../static/app/js/state/draft.js");
const { currentId, dispatch } = await import("../../../static/app/js/state/store.js");
const { readDraft } = await import("../../../static/app/js/storage.js");

/** As the composer does on each letter. */
const type = (text) => changeDraft(currentId.value, text);

/** Neither the first request nor the one after it has an answer. */
async function failTwice(pattern) {
  for (let i = 0; i < 2; i += 1) {
    const one = await request("POST", pattern);
    one.fail();
    await settled();
    if (i === 1) return one.body;
  }
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

test("a message on its way does not come back into the composer when its writer does", async () => {
  openAt("b6");
  openAt("a6");
  type("Only once");
  sendDraft();
  const sending = await request("POST", /a6\/messages/);
  goTo("b6");
  goTo("a6");
  assert.equal(draftText.value, "");
  sending.answer({ message_id: "m1", run_id: "r1" }, 202);
  await settled();
  goTo("b6");
  goTo("a6");
  assert.equal(draftText.value, "");
});

test("the first message of a new chat does not come back while the chat is being made", async () => {
  openAt("b7");
  goTo(null);
  type("Only once");
  sendDraft();
  const making = await request("POST", /\/conversations$/);
  goTo("b7");
  goTo(null);
  assert.equal(draftText.value, "");
  making.answer(conversation("n7"), 201);
  (await request("POST", /n7\/messages/)).answer({ message_id: "m1", run_id: "r1" }, 202);
  await settled();
  assert.deepEqual([currentId.value, draftText.value, readDraft(null), readDraft("n7")], ["n7", "", "", ""]);
});

test("what is typed while a new chat is being made is there after a look at another chat", async () => {
  openAt("b8");
  goTo(null);
  type("The first");
  sendDraft();
  const making = await request("POST", /\/conversations$/);
  type("The second, half written");
  making.answer(conversation("n8"), 201);
  const sending = await request("POST", /n8\/messages/);
  goTo("b8");
  sending.answer({ message_id: "m1", run_id: "r1" }, 202);
  await settled();
  goTo("n8");
  assert.equal(draftText.value, "The second, half written");
});

test("a message without an answer is not sent, and sent again is the same one, also after a look at another chat", async () => {
  openAt("b9");
  openAt("a9");
  type("Once or never");
  sendDraft();
  const first = await failTwice(/a9\/messages/);
  assert.equal(draftText.value, "Once or never");
  goTo("b9");
  assert.equal(notSent.value, null);
  goTo("a9");
  assert.equal(draftText.value, "Once or never");
  assert.match(notSent.value?.reason, /did not answer/);
  sendDraft();
  assert.equal((await request("POST", /a9\/messages/)).body.client_id, first.client_id);
});

test("a message that failed while its writer looked at another chat is marked as not sent in its own", async () => {
  openAt("b10");
  openAt("a10");
  type("Once or never");
  sendDraft();
  await settled();
  goTo("b10");
  const { client_id: key } = await failTwice(/a10\/messages/);
  goTo("a10");
  assert.match(notSent.value?.reason, /did not answer/);
  sendDraft();
  assert.equal((await request("POST", /a10\/messages/)).body.client_id, key);
});

test("after a reload what was on its way is in the composer, with its files, and marked as not sent", async () => {
  openAt("a11");
  type("Half way");
  addUploads(uploaded({ id: "f1", name: "f.txt", url: "", width: 0, height: 0, isImage: false, sizeBytes: 1 }, "a11"));
  sendDraft();
  const { body } = await request("POST", /a11\/messages/);
  const anew = await import("../../../static/app/js/state/draft.js?reload");
  anew.restoreDraft("a11");
  assert.equal(anew.draftText.value, "Half way");
  assert.deepEqual(anew.uploads.value.map(({ key }) => key), ["f1"]);
  assert.equal(anew.notSent.value?.clientId, body.client_id);
  assert.ok(anew.notSent.value?.reason);
  anew.changeDraft("a11", "");
  anew.restoreDraft("a11");
  assert.equal(anew.notSent.value?.clientId, body.client_id, "while its file stands there");
  anew.dropUpload("f1");
  anew.changeDraft("a11", "");
  anew.restoreDraft("a11");
  assert.equal(anew.notSent.value, null);
});

test("a message that is to begin a branch does not go into an answer that began meanwhile", async () => {
  openAt("a12");
  branchAfter.value = "m1";
  dispatch({ type: "run.started", conversation_id: "a12", seq: 1, run_id: "r1", message_id: "m4" });
  type("In a branch of its own");
  sendDraft();
  const sending = await request("POST", /a12\/messages/);
  assert.equal(sending.body.parent, "m1");
  sending.answer({ error: { code: "conflict", message: "An answer is being written." } }, 409);
  await settled();
  assert.deepEqual([draftText.value, branchAfter.value, notSent.value.reason], ["In a branch of its own", "m1", "An answer is being written."]);
});
