/** Cuts long code and long plain text into pieces that are shown one by one. Pure functions. */

/** Code is highlighted piece by piece. Cut at the first line beyond this size, or at a blank line soon after. */
const PIECE_CHARS = 3_000;
const MAX_PIECE_CHARS = 6_000;
export const TEXT_CHARS = 8_000;

/**
 * Return where the pieces of `code` end. For code that grew, pass its previous `ends`: all but the last are kept.
 * @param {string} code @param {number[]} [ends] @returns {number[]}
 */
export function cutCode(code, ends = []) {
  const cuts = ends.slice(0, -1);
  let start = cuts.at(-1) ?? 0;
  while (code.length - start > PIECE_CHARS) {
    const window = code.slice(start, start + MAX_PIECE_CHARS);
    const blank = window.indexOf("\n\n", PIECE_CHARS);
    // The next text may still bring a blank line.
    if (blank < 0 && window.length < MAX_PIECE_CHARS) break;
    const line = window.indexOf("\n", PIECE_CHARS);
    const size = blank >= 0 ? blank + 2 : line >= 0 ? line + 1 : lengthOf(window);
    start += size;
    cuts.push(start);
  }
  if (start < code.length || !cuts.length) cuts.push(code.length);
  return cuts;
}

/** Cut a text into pieces, at line ends or between words if possible. @param {string} text @returns {string[]} */
export function cutText(text) {
  const pieces = [];
  for (let at = 0; at < text.length; ) {
    const window = text.slice(at, at + TEXT_CHARS);
    const isLast = at + TEXT_CHARS >= text.length;
    const size = isLast ? window.length : window.lastIndexOf("\n") + 1 || window.lastIndexOf(" ") + 1 || lengthOf(window);
    pieces.push(text.slice(at, at + size));
    at += size;
  }
  return pieces;
}

/** Return the length without half of a surrogate pair at the end. @param {string} window */
export const lengthOf = (window) => window.length - (/[\ud800-\udbff]$/.test(window) ? 1 : 0);
