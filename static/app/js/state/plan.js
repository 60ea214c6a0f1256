/** The layout of a plan: the place of each step, and the lines that lead to it. Pure functions. */

/**
 * @typedef {{id: string, title: string, task: string, dependencies: string[], round: number, state: string,
 *   attempts: number, result: string}} PlanStep
 * @typedef {{layer: number, row: number}} Place
 * @typedef {Place & {step: PlanStep}} Placed
 * @typedef {{from: Placed, to: Placed, through: Place[]}} Line `through`: the line's place in each layer that it passes
 * @typedef {{placed: Placed[], lines: Line[], layers: number, rows: number}} PlanPicture
 */

const OVER = new Set(["done", "failed", "skipped"]);

/**
 * Lay out a plan. A step is one layer after the last step that it depends on, and a later round comes after all steps
 * before it. A line that passes a layer gets a row of its own there, so that it crosses no step. Dependencies that
 * other lines imply get no line.
 * @param {PlanStep[]} steps @returns {PlanPicture}
 */
export function drawPlan(steps) {
  const layerOf = layersOf(steps);
  const placed = steps.map((step) => ({ step, layer: layerOf.get(step.id) ?? 0, row: 0 }));
  const lines = placed.flatMap((to) => {
    const needed = placed.filter(({ step, layer }) => to.step.dependencies.includes(step.id) && layer < to.layer);
    const direct = needed.filter(({ step }) => !needed.some((other) => other.step !== step && isNeeded(step.id, other.step, steps)));
    return direct.map((from) => ({ from, to, through: between(from, to) }));
  });
  const places = [...placed, ...lines.flatMap(({ through }) => through)];
  const layers = 1 + Math.max(-1, ...placed.map(({ layer }) => layer));
  const before = placesBefore(lines);
  for (let layer = 0; layer < layers; layer += 1) putInRows(places.filter((place) => place.layer === layer), before);
  return { placed, lines, layers, rows: 1 + Math.max(-1, ...places.map(({ row }) => row)) };
}

/** @param {Place} from @param {Place} to @returns {Place[]} */
const between = (from, to) =>
  Array.from({ length: to.layer - from.layer - 1 }, (_, at) => ({ layer: from.layer + 1 + at, row: 0 }));

/**
 * Map each place to the places one layer before, where its lines come from.
 * @param {Line[]} lines @returns {Map<Place, Place[]>}
 */
function placesBefore(lines) {
  /** @type {Map<Place, Place[]>} */
  const before = new Map();
  for (const { from, to, through } of lines) {
    const chain = [from, ...through, to];
    for (const [at, place] of chain.slice(1).entries()) before.set(place, [...(before.get(place) ?? []), chain[at]]);
  }
  return before;
}

/**
 * Return whether the step depends on `id`, directly or through other steps.
 * @param {string} id @param {PlanStep} step @param {PlanStep[]} steps @param {Set<string>} [seen] @returns {boolean}
 */
function isNeeded(id, step, steps, seen = new Set([step.id])) {
  return step.dependencies.some((needed) => {
    if (needed === id) return true;
    const before = steps.find((one) => one.id === needed);
    if (!before || seen.has(needed)) return false;
    seen.add(needed);
    return isNeeded(id, before, steps, seen);
  });
}

/**
 * Assign rows near to where the lines come from. Lines come after all steps, where they need little room.
 * @param {Place[]} layer @param {Map<Place, Place[]>} before
 */
function putInRows(layer, before) {
  const wishes = new Map(layer.map((place) => [place, meanRow(before.get(place) ?? []) + ("step" in place ? 0 : 2 * LAST)]));
  const ordered = [...layer].sort((a, b) => (wishes.get(a) ?? 0) - (wishes.get(b) ?? 0));
  for (const [row, place] of ordered.entries()) place.row = row;
}

const LAST = 1e6;

/**
 * Return the mean row, or LAST if there is none, so that steps without dependencies come after the others.
 * @param {Place[]} places
 */
const meanRow = (places) => (places.length ? places.reduce((sum, { row }) => sum + row, 0) / places.length : LAST);

/** @param {PlanStep[]} steps @returns {Map<string, number>} */
function layersOf(steps) {
  /** @type {Map<string, number>} */
  const layers = new Map();
  const rounds = [...new Set(steps.map((step) => step.round))].sort((a, b) => a - b);
  for (const round of rounds) {
    const behind = Math.max(-1, ...layers.values());
    for (const { id, dependencies } of inOrder(steps.filter((step) => step.round === round)))
      layers.set(id, 1 + Math.max(behind, ...dependencies.map((needed) => layers.get(needed) ?? -1)));
  }
  return layers;
}

/** Sort steps after their dependencies. Steps that depend on each other keep their order. @param {PlanStep[]} steps */
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

/** Mark the unfinished steps of a run that has ended as skipped. @param {PlanStep[]} steps */
export const endSteps = (steps) =>
  steps.map((step) => (OVER.has(step.state) ? step : { ...step, state: "skipped" }));

/** @param {PlanStep[]} steps */
export const countDone = (steps) => steps.filter((step) => step.state === "done").length;
