import assert from "node:assert/strict";
import { test } from "node:test";
import { waits } from "../../static/app/js/state/listing.js";
import { initialState, reduce } from "../../static/app/js/state/reducer.js";

const ID = "c1";
const conversation = {
  id: ID,
  title: "",
  model: null,
  pinned: false,
  archived: false,
  temporary: false,
  last_seq: 0,
  last_activity_at: "2026-11-21T10:00:00Z",
  created_at: "2026-11-21T10:00:00Z",
  expires_at: null,
  active_run: null,
};
const message = (id, position, role, content, more = {}) => ({
  id,
  conversation_id: ID,
  role,
  content,
  status: "complete",
  position,
  parent: position ? `m${position - 1}` : null,
  created_at: "2026-11-21T10:00:00Z",
  ...more,
});
const event = (type, seq, more) => ({
  v: 1,
  type,
  conversation_id: ID,
  at: "2026-11-21T10:00:01Z",
  ...(seq ? { seq } : {}),
  ...more,
});
const all = (state, ...happenings) => happenings.reduce(reduce, state);

function opened(messages = [], more = {}) {
  return all(
    initialState(),
    { type: "conversation/opened", id: ID },
    {
      type: "thread/loaded",
      conversation: { ...conversation, ...more },
      page: { items: messages, next_cursor: null },
      compactions: [],
    },
  );
}
const thread = (state) => state.threads[ID];
const answer = (state) => thread(state).messages.a1;
const streaming = () =>
  all(
    opened([message("m0", 0, "user", "hi")]),
    event("run.started", 1, { run_id: "r1", message_id: "a1", parent: "m0", model: "x", mode: "react" }),
  );
const delta = (offset, text) => event("text.delta", null, { message_id: "a1", offset, text });

test("deltas in order make the text", () => {
  const state = all(streaming(), delta(0, "Hel"), delta(3, "lo"));
  assert.equal(answer(state).text, "Hello");
});

test("a doubled or overlapping delta adds only what is new", () => {
  const state = all(streaming(), delta(0, "Hello"), delta(0, "Hello"), delta(3, "lo wo"), delta(1, "el"));
  assert.equal(answer(state).text, "Hello wo");
});

test("a delta after a hole is not taken, and the hole is noted until a snapshot fills it", () => {
  const holed = all(streaming(), delta(0, "abc"), delta(6, "ghi"));
  assert.deepEqual([answer(holed).text, answer(holed).hasGap], ["abc", true]);
  const healed = all(
    holed,
    event("message.snapshot", null, { message_id: "a1", offset: 3, text: "defghi" }),
    delta(9, "j"),
  );
  assert.deepEqual([answer(healed).text, answer(healed).hasGap], ["abcdefghij", false]);
});

test("offsets count code points, not UTF-16 units", () => {
  const state = all(streaming(), delta(0, "👍🏽é"), delta(3, "漢😀"), delta(4, "😀!"));
  assert.equal(answer(state).text, "👍🏽é漢😀!");
  const snapshot = event("message.snapshot", null, { message_id: "a1", offset: 1, text: "🏽é漢😀!?" });
  assert.equal(answer(reduce(state, snapshot)).text, "👍🏽é漢😀!?");
});

test("a snapshot older than what is shown takes nothing away", () => {
  const state = all(
    streaming(),
    delta(0, "abcdef"),
    event("message.snapshot", null, { message_id: "a1", offset: 0, text: "abc" }),
  );
  assert.equal(answer(state).text, "abcdef");
});

test("the completed message is authoritative, whatever was streamed, and late deltas change nothing", () => {
  const done = event("message.completed", 2, { message: message("a1", 1, "assistant", "The end.", { parent: "m0" }) });
  const state = all(streaming(), delta(0, "The ennnd"), done, delta(9, "!!"));
  assert.deepEqual([answer(state).text, answer(state).status], ["The end.", "complete"]);
});

test("a fact is taken once: the same seq again changes nothing", () => {
  const created = event("message.created", 1, { message: message("m1", 1, "user", "again") });
  const once = reduce(opened([message("m0", 0, "user", "hi")]), created);
  assert.deepEqual(thread(reduce(once, created)), thread(once));
});

test("a hole in the facts asks for a replay and takes nothing until it is filled", () => {
  const before = opened();
  const holed = reduce(before, event("message.created", 2, { message: message("m1", 1, "user", "second") }));
  assert.deepEqual([thread(holed).needsReplay, thread(holed).ids], [true, []]);
  const filled = all(
    holed,
    event("message.created", 1, { message: message("m0", 0, "user", "first") }),
    event("message.created", 2, { message: message("m1", 1, "user", "second") }),
  );
  assert.deepEqual([thread(filled).needsReplay, thread(filled).ids], [false, ["m0", "m1"]]);
});

test("what the sidebar is told of this conversation, without a number, is left to the fact itself", () => {
  const before = opened([message("m0", 0, "user", "hi")]);
  const told = { run_id: "r1", message_id: "a1", model: "m", mode: "react" };
  assert.deepEqual(thread(reduce(before, event("run.started", null, told))), thread(before));
  assert.notDeepEqual(thread(reduce(before, event("run.started", 1, told))), thread(before));
});

test("replayed events of a message that the page already has do not double it", () => {
  const state = all(
    opened([message("m0", 0, "user", "hi"), message("a1", 1, "assistant", "done", { parent: "m0" })]),
    event("message.created", 1, { message: message("m0", 0, "user", "hi") }),
    event("run.started", 2, { run_id: "r1", message_id: "a1", parent: "m0", model: "x" }),
  );
  assert.deepEqual(thread(state).ids, ["m0", "a1"]);
  assert.deepEqual([answer(state).status, thread(state).run], ["complete", null]);
});

test("any order of duplicates ends in the same text", () => {
  const pieces = [delta(0, "one "), delta(4, "two "), delta(8, "three")];
  for (const extra of pieces) {
    for (let at = 0; at <= pieces.length; at += 1) {
      const shuffled = [...pieces.slice(0, at), extra, ...pieces.slice(at)];
      const state = all(streaming(), ...shuffled);
      const { text, hasGap } = answer(state);
      assert.ok("one two three".startsWith(text));
      assert.ok(text === "one two three" || hasGap);
    }
  }
});

test("a finished run ends the streaming and keeps error and usage", () => {
  const error = { category: "timeout", message: "The model did not answer." };
  const state = all(
    streaming(),
    delta(0, "par"),
    event("run.finished", 2, { run_id: "r1", status: "failed", error, usage: { input_tokens: 3, output_tokens: 1 } }),
  );
  assert.equal(thread(state).run, null);
  assert.deepEqual([answer(state).status, answer(state).text, answer(state).run.error], ["failed", "par", error]);
  assert.equal(answer(state).usage.input_tokens, 3);
});

test("an answer that ended at a limit is cut, and says which limit it was", () => {
  const error = { category: "length", message: "The model reached its output limit." };
  const state = all(
    opened([message("m0", 0, "user", "hi")]),
    event("run.started", 1, { run_id: "r1", message_id: "a1", parent: "m0", model: "x" }),
    event("run.finished", 2, { run_id: "r1", status: "complete", error, usage: {} }),
  );
  assert.equal(answer(state).status, "cut");
  assert.equal(answer(state).run.error.category, "length");
});

test("a second answer to the same question takes the first one's place", () => {
  const messages = [message("m0", 0, "user", "hi"), message("m1", 1, "assistant", "first", { parent: "m0" })];
  const state = all(
    opened(messages),
    event("run.started", 1, { run_id: "r2", message_id: "a1", parent: "m0", model: "x" }),
  );
  assert.deepEqual(thread(state).ids, ["m0", "a1"]);
});

test("a continued answer stands after the interrupted one", () => {
  const messages = [
    message("m0", 0, "user", "hi"),
    message("m1", 1, "assistant", "half", { parent: "m0", status: "interrupted" }),
  ];
  const state = all(
    opened(messages),
    event("run.started", 1, { run_id: "r2", message_id: "a1", parent: "m1", model: "x" }),
  );
  assert.deepEqual(thread(state).ids, ["m0", "m1", "a1"]);
});

test("what was sent stands at the end until its row arrives, before or after the acknowledgement", () => {
  const pending = { clientId: "k", text: "hi", attached: [], messageId: null };
  const sent = all(opened(), { type: "send/started", id: ID, pending });
  const created = event("message.created", 1, { message: message("m0", 0, "user", "hi") });
  const acked = { type: "send/acked", id: ID, clientId: "k", messageId: "m0" };
  assert.equal(thread(sent).pending.length, 1);
  assert.deepEqual(thread(all(sent, created, acked)).pending, []);
  assert.deepEqual(thread(all(sent, acked, created)).pending, []);
});

test("a compaction is announced, done, and known again after a reload", () => {
  const compact = (state) =>
    event("compact", state === "started" ? 1 : 2, {
      state,
      compaction_id: "k1",
      message_count: 4,
      kept_count: 2,
      strategy: "checkpoint",
      tokens_before: 900,
      tokens_after: 100,
      last_position: 3,
    });
  const started = reduce(opened(), compact("started"));
  assert.equal(thread(started).compactions[0].status, "running");
  const done = reduce(started, compact("done"));
  assert.deepEqual(
    thread(done).compactions.map((one) => [one.id, one.status, one.last_position]),
    [["k1", "done", 3]],
  );
});

test("an answer elsewhere marks its conversation until some page has shown it", () => {
  const other = { ...conversation, id: "c2", title: "other" };
  const listed = all(
    opened(),
    { type: "conversation/put", conversation: other },
    { ...event("run.started", 9, { run_id: "r", message_id: "x", model: "m" }), conversation_id: "c2" },
  );
  assert.deepEqual(listed.conversations.c2.active_run, { id: "r", message_id: "x" });
  const done = all(
    listed,
    event("conversation.updated", null, { conversation: { ...other, unread: true, message_count: 2 } }),
    { ...event("run.finished", null, { run_id: "r", status: "complete", usage: {} }), conversation_id: "c2" },
  );
  assert.deepEqual([done.conversations.c2.active_run, done.conversations.c2.unread], [null, true]);
  assert.equal(reduce(done, { type: "conversation/opened", id: "c2" }).conversations.c2.unread, true);
  const read = reduce(done, { ...event("conversation.attention", null, { unread: false }), conversation_id: "c2" });
  assert.equal(read.conversations.c2.unread, false);
});

test("what waits for its user: the old state and the events give what is loaded afresh", () => {
  const other = { ...conversation, id: "c2", title: "other", unread: false, waiting_calls: 0, message_count: 0 };
  const listed = all(initialState(), { type: "conversation/put", conversation: other });
  const of = (type, more) => ({ ...event(type, null, more), conversation_id: "c2" });
  const run = { id: "r", message_id: "x" };
  const steps = [
    [of("conversation.updated", { conversation: { ...other, active_run: run } }), { ...other, active_run: run }],
    [of("conversation.attention", { waiting_calls: 2 }), { ...other, active_run: run, waiting_calls: 2 }],
    [of("conversation.attention", { waiting_calls: 0 }), { ...other, active_run: run }],
    [of("conversation.updated", { conversation: { ...other, unread: true, message_count: 2 } }), { ...other, unread: true, message_count: 2 }],
    [of("conversation.attention", { unread: false }), { ...other, message_count: 2 }],
  ];
  let state = listed;
  for (const [happening, fresh] of steps) {
    state = reduce(state, happening);
    assert.deepEqual(state.conversations.c2, fresh);
    const items = waits(fresh) ? [fresh] : [];
    assert.deepEqual(reduce(state, { type: "attention/loaded", items }).conversations.c2, fresh);
  }
  assert.equal(reduce(listed, of("conversation.attention", { unread: true })).conversations.c2.unread, true);
  const stale = reduce(listed, of("conversation.attention", { unread: true, waiting_calls: 1 }));
  assert.deepEqual(reduce(stale, { type: "attention/loaded", items: [] }).conversations.c2, other);
  const unlisted = reduce(initialState(), { type: "attention/loaded", items: [other] });
  assert.deepEqual([Object.keys(unlisted.conversations), unlisted.listing.ids], [["c2"], []]);
});

test("a reset marks the conversation for being fetched again", () => {
  assert.equal(thread(reduce(opened(), { type: "reset", conversation_id: ID })).isStale, true);
});

test("a chat that is deleted elsewhere leaves the list, and says so where it is open", () => {
  const gone = event("conversation.deleted", null, {});
  const open = reduce(opened([message("m0", 0, "user", "hi")]), gone);
  assert.deepEqual([thread(open).status, thread(open).ids, open.conversations[ID], open.listing.ids], ["missing", [], undefined, []]);
  const elsewhere = all(opened(), { type: "conversation/opened", id: null }, gone);
  assert.deepEqual([elsewhere.threads[ID], elsewhere.conversations[ID]], [undefined, undefined]);
});

test("events never change the state they are given", () => {
  const freeze = (value) => {
    if (value && typeof value === "object" && !Object.isFrozen(value))
      Object.values(Object.freeze(value)).forEach(freeze);
    return value;
  };
  let state = freeze(opened([message("m0", 0, "user", "hi")]));
  const events = [
    event("run.started", 1, { run_id: "r1", message_id: "a1", parent: "m0", model: "x" }),
    event("reasoning.delta", null, { message_id: "a1", offset: 0, text: "hm" }),
    delta(0, "a"),
    delta(5, "z"),
    event("tool", 2, { run_id: "r1", call_id: "t", name: "clock", state: "running", arguments: "{}" }),
    event("tool", 3, { run_id: "r1", call_id: "t", name: "clock", state: "done", arguments: "{}", preview: "12:00" }),
    event("recall", 4, { run_id: "r1", items: [{ source: {}, tokens: 1, preview: "p" }] }),
    event("context", 5, { used_tokens: 1, budget_tokens: 10, parts: {} }),
    event("memory.written", 6, { entry_id: "e", day: "2026-11-21", preview: "p" }),
    event("conversation.updated", 7, { conversation }),
    event("run.finished", 8, { run_id: "r1", status: "complete", usage: { input_tokens: 1, output_tokens: 1 } }),
  ];
  for (const one of events) state = freeze(reduce(state, one));
  assert.deepEqual(
    answer(state).tools.map((tool) => tool.state),
    ["done"],
  );
  assert.deepEqual(answer(state).notes, [
    { entryId: "e", day: "2026-11-21", preview: "p", isProposed: false },
  ]);
});

test("reasoning that comes once more from its beginning replaces what was missed", () => {
  const thought = (offset, text) => event("reasoning.delta", null, { message_id: "a1", offset, text });
  const late = all(streaming(), thought(6, "that"), thought(0, "This, that"));
  assert.equal(answer(late).reasoning, "This, that");
  assert.equal(answer(all(late, thought(10, "!"))).reasoning, "This, that!");
  assert.equal(answer(all(late, thought(0, "This"))).reasoning, "This, that");
});

test("what a run does by itself stands with its answer, a hook of the turn's end with the last one", () => {
  const state = all(
    streaming(),
    event("run.notice", 2, { run_id: "r1", kind: "retrying", text: "Trying once more." }),
    event("hook", 3, { run_id: "r1", hook_id: "h", action: "log", text: "Turn 1" }),
    event("run.finished", 4, { run_id: "r1", status: "complete", usage: {} }),
    event("hook", 5, { hook_id: "h", action: "log", text: "The turn ended" }),
    event("tool", 6, { call_id: "c", name: "clock", state: "done", hook_id: "h", arguments: "{}" }),
  );
  assert.deepEqual(answer(state).tools.map((tool) => tool.name), ["clock"]);
  assert.deepEqual(answer(state).notices, [
    { seq: 2, kind: "retrying", text: "Trying once more." },
    { seq: 3, kind: "hook", text: "Turn 1" },
    { seq: 5, kind: "hook", text: "The turn ended" },
  ]);
});

test("a notice that is replayed after a load stands once, and one of the same words as often as it was told", () => {
  const told = (seq) => event("run.notice", seq, { run_id: "r1", kind: "retrying", text: "Trying once more." });
  const loaded = (...notices) => ({
    type: "thread/loaded",
    // The number was read before the page, which may be older or newer than what was streamed in between.
    conversation: { ...conversation, last_seq: 1, active_run: { id: "r1", message_id: "a1" } },
    page: {
      items: [
        message("m0", 0, "user", "hi"),
        message("a1", 1, "assistant", "", { status: "streaming", parent: "m0", run: { id: "r1", status: "running" }, ...(notices.length ? { notices } : {}) }),
      ],
      next_cursor: null,
    },
    compactions: [],
  });
  const seqs = (state) => answer(state).notices.map(({ seq }) => seq);
  const inThePage = { seq: 2, kind: "retrying", text: "Trying once more." };
  assert.deepEqual(seqs(all(streaming(), loaded(inThePage), told(2), told(3))), [2, 3]);
  assert.deepEqual(seqs(all(streaming(), told(2), loaded(), told(2), told(3))), [2, 3]);
});

test("notices and what was remembered come with a loaded message too", () => {
  const remembered = [{ entry_id: "e", day: "2026-11-21", preview: "p" }];
  const notices = [{ seq: 4, kind: "truncated", text: "Older messages were left out." }];
  const state = opened([message("a1", 0, "assistant", "hi", { remembered, notices })]);
  assert.deepEqual(answer(state).notices, notices);
  const again = reduce(state, event("memory.written", 1, { entry_id: "e", day: "2026-11-21", preview: "p" }));
  assert.equal(answer(again).notes.length, 1);
  const removed = reduce(again, event("memory.written", 2, { entry_id: "e", day: "2026-11-21", preview: "" }));
  assert.deepEqual(answer(removed).notes, []);
});

test("a plan stands with its answer as it was told last, and ends with its run", () => {
  const step = (id, state) => ({ id, title: id, task: id, dependencies: [], round: 1, state, attempts: 1, result: "" });
  const planned = all(
    streaming(),
    event("plan", 2, { run_id: "r1", round: 1, steps: [step("a", "running"), step("b", "pending")] }),
    event("plan", 3, { run_id: "r1", round: 1, steps: [step("a", "done"), step("b", "running")] }),
  );
  assert.deepEqual(
    answer(planned).plan.map((one) => one.state),
    ["done", "running"],
  );
  const stopped = reduce(planned, event("run.finished", 4, { run_id: "r1", status: "stopped", usage: {} }));
  assert.deepEqual(
    answer(stopped).plan.map((one) => one.state),
    ["done", "skipped"],
  );
  const run = { id: "r1", status: "stopped", error: null, mode: "plan", plan: [step("a", "done")] };
  assert.equal(answer(opened([message("a1", 0, "assistant", "", { run })])).plan[0].id, "a");
});

test("a wish to forget is asked about below its message, and what is forgotten leaves nothing behind", () => {
  const asked = reduce(
    opened([message("m0", 0, "user", "forget that"), message("a1", 1, "assistant", "The code is 7.", { parent: "m0" })]),
    event("memory.forget_proposed", 1, { proposal_id: "p", message_id: "m0", item_count: 2 }),
  );
  assert.equal(thread(asked).messages.m0.forgetProposal, "p");
  const gone = message("a1", 1, "assistant", "", { parent: "m0", forgotten: true });
  const state = all(
    asked,
    event("run.notice", 2, { run_id: "none", kind: "truncated", text: "x" }),
    event("message.forgotten", 3, { message: gone }),
  );
  assert.deepEqual([answer(state).text, answer(state).isForgotten, answer(state).recalled], ["", true, []]);
});

test("what waits for approval says so until it is approved", () => {
  const told = (type, seq) => event(type, seq, { entry_id: "e", day: "2026-11-21", preview: "p" });
  const proposed = reduce(opened([message("a1", 0, "assistant", "hi")]), told("memory.proposed", 1));
  assert.deepEqual(
    answer(proposed).notes.map((note) => note.isProposed),
    [true],
  );
  assert.deepEqual(
    answer(reduce(proposed, told("memory.written", 2))).notes.map((note) => note.isProposed),
    [false],
  );
});

test("a tool call has one line through all of its states", () => {
  const told = (seq, state, more) =>
    event("tool", seq, { run_id: "r1", call_id: "t", name: "fetch", step: 1, arguments: "{}", state, ...more });
  const waiting = reduce(streaming(), told(2, "waiting"));
  assert.deepEqual([answer(waiting).tools[0].state, answer(waiting).tools[0].askedAt], ["waiting", "2026-11-21T10:00:01Z"]);
  const done = all(
    waiting,
    told(3, "running"),
    told(4, "done", { at: "2026-11-21T10:00:03Z", preview: "ok", truncated: true, offload_ref: "o1" }),
  );
  assert.equal(answer(done).tools.length, 1);
  const { state, preview, isCut, offloadRef, durationMs } = answer(done).tools[0];
  assert.deepEqual([state, preview, isCut, offloadRef, durationMs], ["done", "ok", true, "o1", 2000]);
});

test("a tool call says whether its input is told whole", () => {
  const told = (seq, state, isCut) =>
    event("tool", seq, { run_id: "r1", call_id: "t", name: "fetch", arguments: "{", arguments_cut: isCut, state });
  const waiting = reduce(streaming(), told(2, "waiting", false));
  assert.equal(answer(waiting).tools[0].isInputCut, false);
  assert.equal(answer(reduce(waiting, told(3, "running", true))).tools[0].isInputCut, true);
});

test("calls and results that belong to an answer are no messages of their own", () => {
  const call = [{ type: "tool_call", call_id: "t", name: "clock", arguments: "{}" }];
  const result = [{ type: "tool_result", call_id: "t", name: "clock", text: "12:00" }];
  const tools = [{ call_id: "t", name: "clock", state: "done", arguments: "{}", preview: "12:00" }];
  const state = opened([
    message("m0", 0, "user", "what time is it?"),
    message("c", 1, "assistant", call, { parent: "a1" }),
    message("t", 2, "tool", result, { parent: "a1" }),
    message("a1", 3, "assistant", "Noon.", { parent: "m0", tools }),
  ]);
  assert.deepEqual(thread(state).ids, ["m0", "a1"]);
  assert.deepEqual([answer(state).tools[0].name, answer(state).tools[0].preview], ["clock", "12:00"]);
});

test("what is sent during an answer waits behind it, and moves before it once the model has seen it", () => {
  const injected = (id, position) => ({ message: message(id, position, "user", id, { parent: "a1", kind: "injected" }) });
  const waiting = all(
    streaming(),
    event("message.created", 2, injected("i1", 2)),
    event("message.created", 3, injected("i2", 3)),
  );
  assert.deepEqual(thread(waiting).ids, ["m0", "a1", "i1", "i2"]);
  const places = [
    { message_id: "i1", position: 1 },
    { message_id: "i2", position: 2 },
    { message_id: "a1", position: 3 },
  ];
  const seen = reduce(waiting, event("message.moved", 4, { run_id: "r1", kind: "injected", items: places }));
  assert.deepEqual(thread(seen).ids, ["m0", "i1", "i2", "a1"]);
  assert.deepEqual([thread(seen).messages.i1.isInjected, answer(seen).isInjected], [true, false]);
  const released = reduce(waiting, event("message.moved", 4, { kind: "message", items: [{ message_id: "i1", position: 2 }] }));
  assert.equal(thread(released).messages.i1.isInjected, false);
});

test("what is sent before the answer has begun stays behind it", () => {
  const early = all(
    opened([message("m0", 0, "user", "hi")]),
    event("message.created", 1, { message: message("i1", 2, "user", "and?", { parent: "a1", kind: "injected" }) }),
    event("run.started", 2, { run_id: "r1", message_id: "a1", parent: "m0", model: "x", mode: "react" }),
  );
  assert.deepEqual(thread(early).ids, ["m0", "a1", "i1"]);
});

test("a queued message is shown in its new words, where it stood", () => {
  const injected = message("i1", 2, "user", "In Frnch", { kind: "injected", parent: "a1" });
  const waiting = all(streaming(), event("message.created", 2, { run_id: "r1", message: injected }));
  const edited = reduce(waiting, event("message.edited", 3, { message: { ...injected, content: "In French" } }));
  assert.equal(thread(edited).messages.i1.text, "In French");
  assert.deepEqual(thread(edited).ids, thread(waiting).ids);
});

test("a pinned message says so, and no longer once it is not", () => {
  const pin = (seq, pinned) => event("message.pinned", seq, { message: message("m0", 0, "user", "hi", { pinned }) });
  const state = reduce(opened([message("m0", 0, "user", "hi")]), pin(1, true));
  assert.equal(thread(state).messages.m0.isPinned, true);
  assert.equal(thread(reduce(state, pin(2, false))).messages.m0.isPinned, false);
});

test("an event tells the best of what was recalled, and how much it was", () => {
  const items = [{ source: {}, tokens: 1, preview: "p" }];
  const state = reduce(streaming(), event("recall", 2, { run_id: "r1", items, total_count: 40, total_tokens: 900 }));
  assert.deepEqual([answer(state).recalled, answer(state).recalledCount], [items, 40]);
  const loaded = opened([message("a1", 0, "assistant", "hi", { recalled: items, recalled_count: 40 })]);
  assert.equal(answer(loaded).recalledCount, 40);
});

test("files of a message stand beside its text", () => {
  const file = { type: "file", file_id: "f", mime_type: "text/csv", name: "prices.csv", size_bytes: 12 };
  const state = opened([message("m0", 0, "user", [file, { type: "text", text: "Sum them" }])]);
  assert.deepEqual([thread(state).messages.m0.text, thread(state).messages.m0.files], ["Sum them", [file]]);
});

test("the context has a part for the profile", () => {
  const parts = { system: 1, profile: 2, tools: 3, summary: 4, history: 5, recall: 6 };
  const state = reduce(opened(), event("context", 1, { used_tokens: 21, budget_tokens: 100, parts }));
  assert.deepEqual(thread(state).context.parts, parts);
});

test("a new chat has the chosen mode", () => {
  assert.equal(reduce(initialState(), { type: "mode/chosen", mode: "plan" }).chosenMode, "plan");
});

test("what was remembered and taken back no longer stands below its message", () => {
  const remembered = ["e", "f"].map((id) => ({ entry_id: id, day: "2026-11-21", preview: id }));
  const before = opened([message("a1", 0, "assistant", "hi", { remembered })]);
  const state = reduce(before, { type: "memory/undone", id: ID, entryId: "e" });
  assert.deepEqual(
    answer(state).notes.map((note) => note.entryId),
    ["f"],
  );
  assert.equal(reduce(state, { type: "memory/undone", id: ID, entryId: "x" }), state);
});

test("a conversation that began while the list was loading stays in it", () => {
  const begun = { ...conversation, id: "c9", last_activity_at: "2026-11-21T12:00:00Z" };
  const state = all(
    initialState(),
    { type: "listing/loading", query: "", showsArchived: false },
    { type: "conversation/put", conversation: begun },
    { type: "listing/loaded", page: { items: [conversation], next_cursor: null }, isFirst: true, asked: {} },
  );
  assert.deepEqual(state.listing.ids, ["c9", ID]);
});

test("the newest chat of the list goes when the list is read again without it", () => {
  const chat = (id, hour) => ({ ...conversation, id, last_activity_at: `2026-11-21T${hour}:00:00Z` });
  const page = (...items) => ({ items, next_cursor: null });
  const before = reduce(initialState(), { type: "listing/loaded", page: page(chat("c9", 14), chat("c8", 13), chat("c7", 12)), isFirst: true, asked: {} });
  const used = { type: "conversation/put", conversation: chat("c8", 15) };
  const again = { type: "listing/loaded", page: page(chat("c7", 12)), isFirst: true, asked: before.conversations };
  assert.deepEqual(all(before, used, again).listing.ids, ["c8", "c7"]);
});

test("a new chat has the chosen agent, and agents are known once they are loaded", () => {
  const agents = [{ id: "default", name: "Default", is_default: true }, { id: "g", name: "Gardener", is_default: false }];
  const state = all(initialState(), { type: "agents/loaded", agents }, { type: "agent/chosen", agent: "Gardener" });
  assert.deepEqual([state.agents, state.chosenAgent], [agents, "Gardener"]);
});

test("of two changes of one thing only the last offers a way back", () => {
  const shown = (id, about) => ({ type: "toast/shown", toast: { id, text: "", tone: "plain", action: about && { name: "Undo", run: () => {}, about } } });
  const state = all(initialState(), shown(1, "c1"), shown(2, "c2"), shown(3), shown(4), shown(5, "c1"));
  assert.deepEqual(state.ui.toasts.map(({ id }) => id), [2, 3, 4, 5]);
});

test("how an answer was made is not shown beside another chat", () => {
  const shown = reduce(opened(), { type: "ui/changed", ui: { panel: "run", panelRun: "r1" } });
  assert.equal(reduce(shown, { type: "conversation/opened", id: ID }).ui.panel, "run");
  for (const id of ["c2", null]) assert.equal(reduce(shown, { type: "conversation/opened", id }).ui.panel, null);
  const context = reduce(opened(), { type: "ui/changed", ui: { panel: "context" } });
  assert.equal(reduce(context, { type: "conversation/opened", id: "c2" }).ui.panel, "context");
});
