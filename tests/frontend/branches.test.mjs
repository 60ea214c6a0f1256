import assert from "node:assert/strict";
import { test } from "node:test";
import { initialState, reduce } from "../../static/app/js/state/reducer.js";

const ID = "c1";
const conversation = (more = {}) => ({ id: ID, branch: "b1", archived: false, last_seq: 0, active_run: null, ...more });
const message = (id, position, role, parent, more = {}) => ({
  id,
  role,
  content: `words of ${id}`,
  status: "complete",
  position,
  parent,
  created_at: "2026-11-21T10:00:00Z",
  ...more,
});
const loaded = (items, more) => ({
  type: "thread/loaded",
  conversation: conversation(more),
  page: { items, next_cursor: null },
  compactions: [],
});
const opened = (items) => [{ type: "conversation/opened", id: ID }, loaded(items)].reduce(reduce, initialState());
const event = (type, seq, more) => ({ v: 1, type, seq, conversation_id: ID, at: "2026-11-21T10:00:01Z", ...more });
const thread = (state) => state.threads[ID];
const talk = () =>
  opened([message("q1", 0, "user", null), message("a1", 1, "assistant", "q1"), message("q2", 2, "user", "a1")]);

test("an edit of the first question leaves nothing of the other branch in view", () => {
  const state = reduce(talk(), event("message.created", 1, { message: message("q1b", 3, "user", null) }));
  assert.deepEqual(thread(state).ids, ["q1b"]);
});

test("an edit further down keeps what stands above it", () => {
  const state = reduce(talk(), event("message.created", 1, { message: message("q2b", 3, "user", "a1") }));
  assert.deepEqual(thread(state).ids, ["q1", "a1", "q2b"]);
});

test("a conversation that turned to another branch is loaded again; one with a new title is not", () => {
  const renamed = reduce(talk(), event("conversation.updated", 1, { conversation: conversation({ title: "New" }) }));
  assert.equal(thread(renamed).isStale, false);
  const turned = reduce(renamed, event("conversation.updated", 2, { conversation: conversation({ branch: "b2" }) }));
  assert.equal(thread(turned).isStale, true);
  const read = reduce(turned, loaded([message("q1b", 3, "user", null)], { branch: "b2", last_seq: 2 }));
  assert.deepEqual([thread(read).isStale, thread(read).branch, thread(read).ids], [false, "b2", ["q1b"]]);
  assert.deepEqual(Object.keys(thread(read).messages), ["q1b"]);
});

test("siblings outlive events that do not name them", () => {
  const siblings = ["a1", "a2"];
  const state = opened([message("q1", 0, "user", null), message("a2", 2, "assistant", "q1", { siblings })]);
  const done = reduce(state, event("message.completed", 1, { message: message("a2", 2, "assistant", "q1") }));
  assert.deepEqual(thread(done).messages.a2.siblings, siblings);
  assert.deepEqual(thread(done).messages.q1.siblings, []);
});

test("what was streamed while a page was on its way stays in view, and so does which answer it was", () => {
  const begun = { run_id: "r1", message_id: "a1", parent: "q1", model: "x", mode: "direct" };
  const stale = loaded([message("q1", 0, "user", null), message("a1", 1, "assistant", "q1", { status: "streaming", content: "Wo", siblings: ["a0", "a1"] })], {
    last_seq: 1,
    active_run: { id: "r1", message_id: "a1" },
  });
  const words = event("text.delta", undefined, { message_id: "a1", offset: 0, text: "Words" });
  const answering = [event("run.started", 1, begun), words].reduce(reduce, opened([message("q1", 0, "user", null)]));
  const ended = reduce(answering, event("run.finished", 2, { run_id: "r1", status: "complete" }));
  for (const [before, status] of [[answering, "streaming"], [ended, "complete"]]) {
    const { messages, lastSeq, liveAnswer } = thread(reduce(before, stale));
    assert.deepEqual([messages.a1.text, messages.a1.status, messages.a1.siblings], ["Words", status, ["a0", "a1"]]);
    assert.deepEqual([lastSeq, liveAnswer], [1, "a1"]);
  }
  assert.deepEqual([thread(ended).run, thread(ended).liveAnswer], [null, "a1"]);
});
