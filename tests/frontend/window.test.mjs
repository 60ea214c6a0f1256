import assert from "node:assert/strict";
import { test } from "node:test";
import { dividersOf } from "../../static/app/js/state/context.js";
import { initialState, reduce } from "../../static/app/js/state/reducer.js";

const ID = "c1";
const conversation = (more = {}) => ({ id: ID, branch: "b1", archived: false, last_seq: 0, active_run: null, ...more });
const message = (position, more = {}) => ({
  id: `m${position}`,
  role: position % 2 ? "assistant" : "user",
  content: `words ${position}`,
  status: "complete",
  position,
  parent: position ? `m${position - 1}` : null,
  created_at: "2026-11-21T10:00:00Z",
  ...more,
});
const range = (first, last) => Array.from({ length: last - first + 1 }, (_, n) => message(first + n));
const page = (first, last, { older = String(first), newer = String(last) } = {}) => ({
  items: range(first, last),
  next_cursor: first === 0 ? null : older,
  newer_cursor: newer,
});
const loaded = (of, more) => ({ type: "thread/loaded", conversation: conversation(more), page: of, compactions: [] });
const event = (type, seq, more) => ({ v: 1, type, seq, conversation_id: ID, at: "2026-11-21T10:00:01Z", ...more });
const all = (state, ...happenings) => happenings.reduce(reduce, state);
const opened = (of, more) => all(initialState(), { type: "conversation/opened", id: ID }, loaded(of, more));
const thread = (state) => state.threads[ID];
/** Messages 40 to 44 of a hundred. */
const inWindow = () => opened(page(40, 44));
const newer = (of, after, more) => ({ type: "newer/loaded", id: ID, after, page: of, conversation: conversation(more) });

test("older pages come before, without doubles", () => {
  const state = all(opened(page(2, 4, { newer: null })), { type: "older/loaded", id: ID, before: "2", page: page(0, 2) });
  assert.deepEqual(thread(state).ids, ["m0", "m1", "m2", "m3", "m4"]);
  assert.equal(thread(state).olderCursor, null);
});

test("who scrolls far back leaves the newest behind, but not while an answer is on its way", () => {
  const older = { type: "older/loaded", id: ID, before: "200", page: page(100, 199), leavesNewest: true };
  const left = thread(reduce(opened(page(200, 500, { newer: null })), older));
  assert.deepEqual([left.ids[0], left.ids.length, left.newerCursor], ["m100", 280, "379"]);
  assert.equal(Object.keys(left.messages).length, 280);
  const run = { run_id: "r1", message_id: "m500", parent: "m499", model: "x", mode: "react" };
  const answered = thread(reduce(opened(page(200, 500, { newer: null }), { active_run: run }), older));
  assert.deepEqual([answered.ids.length, answered.newerCursor], [401, null]);
});

test("a newer page that was on its way as the newest were left does not load for ever", () => {
  const older = { type: "older/loaded", id: ID, before: "200", page: page(100, 199), leavesNewest: true };
  const loading = all(opened(page(200, 500)), { type: "newer/loading", id: ID }, older);
  const late = thread(reduce(loading, newer(page(501, 540), "500")));
  assert.deepEqual([late.newerCursor, late.ids.length, late.isLoadingNewer], ["379", 280, false]);
});

test("newer pages come behind until the newest is there", () => {
  const further = reduce(inWindow(), newer(page(45, 49), "44"));
  assert.deepEqual([thread(further).ids.length, thread(further).newerCursor], [10, "49"]);
  const atEnd = reduce(further, newer(page(50, 52, { newer: null }), "49"));
  assert.deepEqual([thread(atEnd).ids.at(-1), thread(atEnd).newerCursor], ["m52", null]);
});

test("a page that was asked for before the view was replaced is not mixed into it", () => {
  const jumped = all(opened(page(90, 99, { newer: null })), loaded(page(40, 44)));
  const late = all(
    jumped,
    { type: "older/loaded", id: ID, before: "90", page: page(80, 89) },
    newer(page(70, 74), "69"),
  );
  assert.deepEqual(thread(late), thread(jumped));
});

test("what happens at the end is not put into a window further up, and changes what is in it", () => {
  const run = { run_id: "r1", message_id: "m101", parent: "m100", model: "x", mode: "react" };
  const state = all(
    inWindow(),
    event("message.created", 1, { message: message(100) }),
    event("run.started", 2, run),
    event("text.delta", null, { message_id: "m101", offset: 0, text: "Hello" }),
    event("memory.written", 3, { entry_id: "e", day: "2026-11-21", preview: "p" }),
    event("hook", 4, { hook_id: "h", action: "log", text: "The turn ended" }),
    event("message.pinned", 5, { message: message(42, { pinned: true }) }),
  );
  assert.deepEqual(thread(state).ids, ["m40", "m41", "m42", "m43", "m44"]);
  assert.deepEqual(thread(state).run, { id: "r1", message_id: "m101" });
  assert.deepEqual([thread(state).lastSeq, thread(state).messages.m42.isPinned], [5, true]);
  for (const { notes, notices } of Object.values(thread(state).messages)) assert.deepEqual([notes, notices], [[], []]);
  const done = event("message.completed", 6, { message: message(101) });
  const finished = all(state, done, event("run.finished", 7, { run_id: "r1", status: "complete", usage: {} }));
  assert.deepEqual([thread(finished).ids.length, thread(finished).run], [5, null]);
});

test("what happened while the last page was on its way is followed from before that page, and taken once", () => {
  const told = event("message.created", 8, { message: message(47) });
  const created = { ...told, message: message(48) };
  const window = opened(page(40, 44), { last_seq: 7 });
  // Read: the numbers (8), the page (up to 47). Meanwhile: the ninth fact, which the window does not take.
  const late = all(window, told, { ...created, seq: 9 }, newer(page(45, 47, { newer: null }), "44", { last_seq: 8 }));
  assert.deepEqual([thread(late).ids.at(-1), thread(late).lastSeq], ["m47", 8]);
  const replayed = all(late, { ...created, seq: 9 }, { ...created, seq: 9 });
  assert.deepEqual([thread(replayed).ids.slice(-2), thread(replayed).lastSeq], [["m47", "m48"], 9]);
});

test("what was sent is no longer on its way once its row is there, in a window too", () => {
  const pending = { clientId: "k", text: "words 100", attached: [], messageId: null };
  const sent = all(inWindow(), { type: "send/started", id: ID, pending });
  const state = reduce(sent, event("message.created", 1, { message: message(100) }));
  assert.deepEqual([thread(state).pending, thread(state).ids.length], [[], 5]);
});

test("the reader stays where they asked to be until they open the conversation again, or come back to the newest", () => {
  const asked = reduce(inWindow(), { type: "message/sought", id: ID, messageId: "m42" });
  assert.deepEqual(thread(asked).scrollTarget, { messageId: "m42" });
  assert.equal(thread(reduce(asked, { type: "conversation/opened", id: ID })).scrollTarget, null);
  const back = reduce(asked, loaded(page(95, 99, { newer: null })));
  assert.deepEqual(thread(back).scrollTarget, { messageId: null });
  assert.equal(thread(reduce(back, loaded(page(95, 99, { newer: null })))).scrollTarget, null);
});

test("what left before its summary is stated where it ends, until a summary covers it", () => {
  const parts = { summary: 40, history: 100 };
  const context = { used_tokens: 140, budget_tokens: 1000, parts, left_out: 3, left_out_last_position: 42, left_out_extract: true };
  const cut = reduce(inWindow(), event("context", 1, context));
  const [waiting] = dividersOf(thread(cut));
  assert.deepEqual([waiting.status, waiting.message_count, waiting.last_position], ["waiting", 3, 42]);
  assert.equal(waiting.strategy, "waiting");
  const marked = reduce(inWindow(), event("context", 1, { ...context, left_out_extract: false }));
  assert.equal(dividersOf(thread(marked))[0].strategy, "truncate");
  const compact = { compaction_id: "s1", state: "started", strategy: "summary", message_count: 3, last_position: 42 };
  const shown = dividersOf(thread(reduce(cut, event("compact", 2, compact))));
  assert.deepEqual(shown.map(({ id, status }) => [id, status]), [["s1", "running"]]);
  const roomy = reduce(cut, event("context", 2, { ...context, left_out: 0, left_out_last_position: null }));
  assert.deepEqual(dividersOf(thread(roomy)), []);
});
