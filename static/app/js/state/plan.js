/** A plan as a picture: which step stands where, and which lines lead to it. Pure. */

/**
 * @typedef {{id: string, title: string, task: string, dependencies: string[], round: number, state: string,
 *   attempts: number, result: string}} PlanStep
 * @typedef {{step: PlanStep, layer: number, row: number}} Placed
 * @typedef {{placed: Placed[], lines: {from: Placed, to: Placed}[], layers: number, rows: number}} PlanPicture
 */

const OVER = new Set(["done", "failed", "skipped"]);

/** A step stands one layer behind the last one it needs; a later round behind all before it. @param {PlanStep[]} steps @returns {PlanPicture} */
export function drawPlan(steps) {
  /** @type {Map<string, Placed>} */
  const places = new Map();
  /** @type {number[]} */
  const filled = [];
  const rounds = [...new Set(steps.map((step) => step.round))].sort((a, b) => a - b);
  for (const step of rounds.flatMap((round) => inOrder(steps.filter((one) => one.round === round)))) {
    const needed = step.dependencies.flatMap((id) => places.get(id) ?? []);
    const before = [...places.values()].filter((placed) => placed.step.round < step.round);
    const layer = 1 + Math.max(-1, ...needed.map((one) => one.layer), ...before.map((one) => one.layer));
    const row = filled[layer] ?? 0;
    filled[layer] = row + 1;
    places.set(step.id, { step, layer, row });
  }
  const placed = [...places.values()];
  const lines = placed.flatMap((to) =>
    to.step.dependencies.flatMap((id) => {
      const from = places.get(id);
      return from ? [{ from, to }] : [];
    }),
  );
  return { placed, lines, layers: filled.length, rows: Math.max(0, ...filled) };
}

/** What is needed first comes first; steps that wait for each other come as they were given. @param {PlanStep[]} steps */
function inOrder(steps) {
  /** @type {PlanStep[]} */
  const ordered = [];
  let left = steps;
  while (left.length) {
    const waiting = new Set(left.map((step) => step.id));
    const free = left.filter((step) => !step.dependencies.some((id) => waiting.has(id)));
    const next = free.length ? free : left;
    ordered.push(...next);
    left = left.filter((step) => !next.includes(step));
  }
  return ordered;
}

/** Of a run that has ended, nothing is under way any more. @param {PlanStep[]} steps */
export const endSteps = (steps) =>
  steps.map((step) => (OVER.has(step.state) ? step : { ...step, state: "skipped" }));

/** @param {PlanStep[]} steps */
export const countDone = (steps) => steps.filter((step) => step.state === "done").length;
