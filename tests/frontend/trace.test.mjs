import assert from "node:assert/strict";
import { test } from "node:test";
import { drawTrace, nameCall } from "../../static/app/js/state/trace.js";

const usage = { input_tokens: 10, output_tokens: 2, cached_tokens: 0, exact: true };
const at = (second) => `2026-11-21T10:00:${String(second).padStart(2, "0")}Z`;

test("steps and their tools stand where they began, and the whole is as long as its last end", () => {
  const call = { call_id: "t", name: "clock", state: "done", started_at: at(2), finished_at: at(5), duration_ms: 3000 };
  const denied = { call_id: "d", name: "fetch", state: "denied", requested_at: at(1), started_at: null, finished_at: at(3), duration_ms: null };
  const step = (n, second, more) => ({ n, purpose: "chat", plan_step: null, title: null, round: null, model: "m", started_at: at(second), first_token_ms: 300, duration_ms: 1500, usage, tools: [], ...more });
  const byHook = { call_id: "h", name: "clock", hook_id: "early", state: "done", requested_at: at(0), started_at: at(0), finished_at: at(1), duration_ms: 1000 };
  const hooks = [{ hook_id: "early", tool: byHook }, { hook_id: "words", tool: null }];
  const { rows, totalMs } = drawTrace({ iterations: [step(1, 2, { tools: [call, denied] }), step(2, 6)], hooks });
  assert.deepEqual(
    rows.map(({ key, startMs, durationMs }) => [key, startMs, durationMs]),
    [
      ["tool-h", 0, 1000],
      ["tool-d", 1000, 2000],
      ["step-1", 2000, 1500],
      ["tool-t", 2000, 3000],
      ["step-2", 6000, 1500],
    ],
  );
  assert.equal(totalMs, 7500);
});

test("a model call is named by what it was for", () => {
  const names = [
    ["chat", null, null, null],
    ["plan", "planner", null, 1],
    ["plan", "a", "Price of A", 1],
    ["plan", "analyst", null, 1],
    ["plan", "planner", null, 2],
    ["plan", "c", null, 2],
    ["plan", "analyst", null, 2],
    ["title", null, null, null],
  ].map(([purpose, plan_step, title, round]) => nameCall({ purpose, plan_step, title, round }));
  assert.deepEqual(names, ["Answer", "Plan", "Price of A", "Analysis", "New plan, round 2", "c", "Analysis, round 2", "title"]);
});

test("a tool of a plan's step says whose it is", () => {
  const call = { call_id: "t", name: "clock", state: "done", started_at: at(2), finished_at: at(5), duration_ms: 3000, hook_id: null };
  const step = { n: 1, purpose: "plan", plan_step: "a", title: "Price of A", round: 1, model: "m", started_at: at(1), first_token_ms: 1, duration_ms: 1, usage, tools: [call] };
  assert.deepEqual(drawTrace({ iterations: [step], hooks: [] }).rows.map(({ label, detail }) => [label, detail]), [["Price of A", "m"], ["clock", "Price of A"]]);
});
