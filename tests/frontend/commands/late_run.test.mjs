import assert from "node:assert/strict";
import { test } from "node:test";
import { conversation } from "./page.mjs";

const { initialState, reduce } = await import("../../../static/app/js/state/reducer.js");

test("the end of one answer does not take the sign off another that has begun", () => {
  let state = reduce(initialState(), { type: "conversation/put", conversation: conversation("c1") });
  state = reduce(state, { type: "run.started", conversation_id: "c1", run_id: "r2", message_id: "m4" });
  state = reduce(state, { type: "run.finished", conversation_id: "c1", run_id: "r1", message_id: "m2", status: "complete" });
  assert.equal(state.conversations.c1.active_run?.id, "r2");
});
