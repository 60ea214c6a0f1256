/** The shape of a plan in pixels: boxes with wrapped titles, lines around them, and arrows. Pure functions. */

/**
 * @typedef {import("./plan.js").Place} Place
 * @typedef {import("./plan.js").Placed} Placed
 * @typedef {{step: import("./plan.js").PlanStep, x: number, y: number, width: number, height: number,
 *   words: string[]}} Box
 * @typedef {{state: string, path: string, arrow: string}} Edge
 * @typedef {{width: number, height: number, boxes: Box[], edges: Edge[]}} PlanShape
 */

const WIDTH = { wide: 176, narrow: 148, least: 92, word: 112 };
export const LINE = 17;
export const PAD = 11;
const TEXT_SIZE = 13;
const MARGIN = 2;
const GAP = { right: 44, down: 34 };
const BESIDE = 12;
/** The size of a row that contains lines only. */
const THIN = 18;
const ARROW = 7;
const MOST_LINES = 12;
const WIDE_SIGN = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303f\uff00-\uff60\p{Extended_Pictographic}]/u;
/** A word with the spaces after it, or one character of a script without spaces. */
const WORD = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u3000-\u303f\uff00-\uff60]|[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u3000-\u303f\uff00-\uff60]+\s*|\s+/gu;

/**
 * Estimate the width of a text, as there is no page to measure it on. The result is rather too wide than too narrow.
 * @param {string} text
 */
const widthOf = (text) => [...text].reduce((sum, sign) => sum + TEXT_SIZE * (WIDE_SIGN.test(sign) ? 1 : 0.6), 0);

/** @param {string} title @param {number} width @returns {string[]} */
export function wrapTitle(title, width) {
  const most = Math.floor(width / (TEXT_SIZE * 0.6));
  // Split a word that is longer than a line.
  const words = (title.match(WORD) ?? []).flatMap((word) => (widthOf(word.trimEnd()) > width ? (word.match(new RegExp(`.{1,${most}}`, "gu")) ?? []) : [word]));
  /** @type {string[]} */
  const lines = [];
  for (const word of words) {
    const longer = (lines.at(-1) ?? "") + word;
    if (lines.length && widthOf(longer.trimEnd()) <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  const trimmed = lines.map((line) => line.trim());
  return trimmed.length > MOST_LINES ? [...trimmed.slice(0, MOST_LINES - 1), `${trimmed[MOST_LINES - 1].slice(0, -1)}…`] : trimmed;
}

/**
 * Shape the plan from left to right if that fits, otherwise downward, with steps narrow enough to fit beside each
 * other. If neither fits, return the narrower shape, which the page shrinks.
 * @param {import("./plan.js").PlanPicture} picture @param {number} room @returns {PlanShape}
 */
export function shapePlan(picture, room) {
  const width = room < 480 ? WIDTH.narrow : WIDTH.wide;
  const right = shape(picture, width, false);
  if (right.width <= room) return right;
  const down = shape(picture, fittingWidth(picture, room, width), true);
  return down.width <= room || down.width < right.width ? down : right;
}

/**
 * Return the width of a step at which all rows fit beside each other, but no less than most words need.
 * @param {import("./plan.js").PlanPicture} picture @param {number} room @param {number} most
 */
function fittingWidth({ placed, rows }, room, most) {
  const wide = new Set(placed.map(({ row }) => row)).size;
  const rest = room - 2 * MARGIN - BESIDE * (rows - 1) - THIN * (rows - wide);
  const words = placed.flatMap(({ step }) => step.title.match(WORD) ?? []);
  const longest = Math.max(0, ...words.map((word) => Math.ceil(widthOf(word.trimEnd()))));
  const least = Math.max(WIDTH.least, Math.min(WIDTH.word, longest + 2 * PAD));
  return Math.min(most, Math.max(least, Math.floor(rest / Math.max(1, wide))));
}

/**
 * @param {import("./plan.js").PlanPicture} picture @param {number} width of a step @param {boolean} isDown
 * @returns {PlanShape}
 */
function shape({ placed, lines, layers, rows }, width, isDown) {
  const sized = placed.map((place) => {
    const words = wrapTitle(place.step.title, width - 2 * PAD);
    return { ...place, words, height: words.length * LINE + 2 * PAD };
  });
  const tallest = (/** @type {typeof sized} */ some) => Math.max(THIN, ...some.map(({ height }) => height));
  const along = spread(layers, isDown ? GAP.down : GAP.right, (layer) => (isDown ? tallest(sized.filter((one) => one.layer === layer)) : width));
  const across = spread(rows, BESIDE, (row) => {
    const inRow = sized.filter((one) => one.row === row);
    return isDown ? (inRow.length ? width : THIN) : tallest(inRow);
  });
  const at = (/** @type {number} */ onward, /** @type {number} */ beside) => (isDown ? `${beside} ${onward}` : `${onward} ${beside}`);
  const boxes = sized.map(({ step, layer, row, words, height }) => {
    const onward = along.start(layer);
    const beside = across.middle(row) - (isDown ? width : height) / 2;
    return { step, words, width, height, x: isDown ? beside : onward, y: isDown ? onward : beside };
  });
  const edges = lines.map((line) => {
    const box = boxes.find(({ step }) => step === line.from.step);
    const begin = isDown && box ? box.y + box.height : along.end(line.from.layer);
    return drawEdge(line, begin, along, across, at);
  });
  const [long, broad] = [along.total + MARGIN, across.total + MARGIN];
  return { width: isDown ? broad : long, height: isDown ? long : broad, boxes, edges };
}

/**
 * Draw a line. It moves sideways only between the layers, where there are no boxes.
 * @param {import("./plan.js").Line} line @param {number} begin @param {Spread} along @param {Spread} across
 * @param {(onward: number, beside: number) => string} at @returns {Edge}
 */
function drawEdge({ from, to, through }, begin, along, across, at) {
  const parts = [`M${at(begin, across.middle(from.row))}`];
  /** @type {Place} */
  let last = from;
  for (const place of [...through, to]) {
    const [exit, enter] = [along.end(last.layer), along.start(place.layer) - (place === to ? ARROW : 0)];
    const half = (exit + enter) / 2;
    const [before, after] = [across.middle(last.row), across.middle(place.row)];
    parts.push(`L${at(exit, before)}`, `C${at(half, before)} ${at(half, after)} ${at(enter, after)}`);
    last = place;
  }
  const tip = along.start(to.layer);
  const middle = across.middle(to.row);
  const arrow = `M${at(tip - ARROW, middle - ARROW / 2)}L${at(tip, middle)}L${at(tip - ARROW, middle + ARROW / 2)}Z`;
  return { state: from.step.state, path: parts.join(""), arrow };
}

/** @typedef {ReturnType<typeof spread>} Spread */

/**
 * Place items one after the other.
 * @param {number} count @param {number} gap @param {(index: number) => number} sizeOf
 */
function spread(count, gap, sizeOf) {
  const sizes = Array.from({ length: count }, (_, index) => sizeOf(index));
  const starts = sizes.map((_, index) => MARGIN + sizes.slice(0, index).reduce((sum, size) => sum + size + gap, 0));
  return {
    start: (/** @type {number} */ index) => starts[index],
    end: (/** @type {number} */ index) => starts[index] + sizes[index],
    middle: (/** @type {number} */ index) => starts[index] + sizes[index] / 2,
    total: count ? starts[count - 1] + sizes[count - 1] : 0,
  };
}
