import assert from "node:assert/strict";
import { test } from "node:test";
import { drawPlan, endSteps } from "../../static/app/js/state/plan.js";

const step = (id, dependencies = [], more = {}) => ({
  id,
  title: id,
  task: id,
  dependencies,
  round: 1,
  state: "pending",
  attempts: 0,
  result: "",
  ...more,
});
const places = (steps) =>
  Object.fromEntries(drawPlan(steps).placed.map(({ step: { id }, layer, row }) => [id, [layer, row]]));

test("a step stands behind everything it waits for, and beside what it does not", () => {
  const steps = [step("report", ["a", "b"]), step("a"), step("b", ["a"]), step("c")];
  assert.deepEqual(places(steps), { a: [0, 0], c: [0, 1], b: [1, 0], report: [2, 0] });
  const { lines, layers, rows } = drawPlan(steps);
  assert.deepEqual(
    lines.map(({ from, to }) => `${from.step.id}>${to.step.id}`).sort(),
    ["a>b", "a>report", "b>report"],
  );
  assert.deepEqual([layers, rows], [3, 2]);
});

test("a later round stands behind all of the round before", () => {
  assert.deepEqual(places([step("a"), step("b", ["a"]), step("again", [], { round: 2 })]).again, [2, 0]);
});

test("steps that wait for each other, or for none that is there, are drawn all the same", () => {
  assert.equal(drawPlan([step("a", ["b"]), step("b", ["a"]), step("c", ["gone"])]).placed.length, 3);
  assert.deepEqual(drawPlan([]), { placed: [], lines: [], layers: 0, rows: 0 });
});

test("of a run that has ended nothing is under way any more", () => {
  const states = endSteps(["pending", "running", "done", "failed", "skipped"].map((state) => step(state, [], { state })));
  assert.deepEqual(
    states.map((one) => one.state),
    ["skipped", "skipped", "done", "failed", "skipped"],
  );
});
