import assert from "node:assert/strict";
import { test } from "node:test";
import { drawPlan, endSteps } from "../../static/app/js/state/plan.js";
import { shapePlan, wrapTitle } from "../../static/app/js/state/plan_shape.js";

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
    ["a>b", "b>report"],
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

const PLANS = {
  one: [step("a")],
  chain: [step("a"), step("b", ["a"]), step("c", ["b", "a"]), step("d", ["a", "c"])],
  wide: [..."abcdef"].map((id) => step(id)).concat(step("z", [..."abcdef"])),
  ten: [
    step("a", [], { title: "Read the three reports about the harbour, all of them, with their appendices" }),
    step("b", [], { title: "查找港口的三份报告及其所有附录，并摘录其中的数字" }),
    step("c", ["a"]),
    step("d", ["a", "b"]),
    step("e", ["c"]),
    step("f", ["b"]),
    step("g", ["a", "f"]),
    step("h", ["c", "e", "b"]),
    step("i", ["a", "h"]),
    step("j", ["i", "g", "d"], { title: "Donaudampfschifffahrtsgesellschaftskapitänsmütze" }),
  ],
};

/** Without those that others say: c waits for a by b already. */
const LINES = { one: 0, chain: 3, wide: 6, ten: 13 };

/** Points along a path of M, L and C, curves in small pieces. */
function pointsOf(path) {
  const points = [];
  for (const [, kind, given] of path.matchAll(/([MLC])([^MLC]+)/g)) {
    const numbers = given.trim().split(/ /).map(Number);
    if (kind !== "C") points.push(numbers);
    else {
      const [x0, y0] = points.at(-1);
      const [x1, y1, x2, y2, x3, y3] = numbers;
      const at = (t, a, b, c, d) => (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t ** 2 * c + t ** 3 * d;
      for (let n = 1; n <= 20; n += 1) points.push([at(n / 20, x0, x1, x2, x3), at(n / 20, y0, y1, y2, y3)]);
    }
  }
  return points.flatMap(([x, y], n) => {
    const [x0, y0] = points[n - 1] ?? [x, y];
    return Array.from({ length: 11 }, (_, part) => [x0 + ((x - x0) * part) / 10, y0 + ((y - y0) * part) / 10]);
  });
}

test("no line crosses a step, and no step lies on another, in either direction", () => {
  for (const [name, steps] of Object.entries(PLANS)) {
    for (const room of [2000, 730, 310]) {
      const { boxes, edges, width, height } = shapePlan(drawPlan(steps), room);
      assert.equal(edges.length, LINES[name]);
      const inside = ([x, y], box) => x > box.x + 0.5 && x < box.x + box.width - 0.5 && y > box.y + 0.5 && y < box.y + box.height - 0.5;
      for (const { path } of edges)
        for (const point of pointsOf(path)) {
          assert.deepEqual(boxes.filter((box) => inside(point, box)).map((box) => box.step.id), [], `${name} at ${room}: ${path}`);
          assert.ok(point[0] >= 0 && point[0] <= width && point[1] >= 0 && point[1] <= height);
        }
      for (const one of boxes)
        for (const other of boxes)
          if (one !== other)
            assert.ok(one.x + one.width <= other.x || other.x + other.width <= one.x || one.y + one.height <= other.y || other.y + other.height <= one.y, name);
    }
  }
});

test("on a phone steps that stand beside each other become narrower, so that the picture fits", () => {
  const three = [..."abc"].map((id) => step(id)).concat(step("z", [..."abc"]));
  const { width, boxes } = shapePlan(drawPlan([...three, step("y", ["z"])]), 314);
  assert.ok(width <= 314, `${width}`);
  assert.ok(boxes.every((box) => box.width >= 92));
});

test("on a phone a usual word of a title is not broken", () => {
  const titles = ["Write the itinerary", "Final summary with everything", "Compare ferries"];
  const beside = titles.map((title) => step(title));
  const { boxes } = shapePlan(drawPlan([...beside, step("z", titles), step("y", ["z"])]), 314);
  const words = boxes.flatMap((box) => box.words.join(" ").split(" "));
  for (const word of titles.join(" ").split(" ")) assert.ok(words.includes(word), words.join("|"));
});

test("a title is whole, in lines that fit", () => {
  assert.deepEqual(wrapTitle("Read the reports", 154), ["Read the reports"]);
  assert.deepEqual(wrapTitle("Read the three reports about the harbour", 154), ["Read the three", "reports about the", "harbour"]);
  assert.equal(wrapTitle("查找港口的三份报告及其所有附录", 100).join(""), "查找港口的三份报告及其所有附录");
  assert.ok(wrapTitle("x".repeat(50), 154).every((line) => line.length <= 19));
  assert.equal(wrapTitle("word ".repeat(80), 154).length, 12);
});
