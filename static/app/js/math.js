/** LaTeX in Markdown: finds it while parsing, and draws it with KaTeX, which is loaded when first needed. */

const escapeTex = (/** @type {string} */ tex) => tex.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);

// As in LaTeX, no blank line stands in a formula: a block of Markdown ends there.
const BLOCK = /^(?:\$\$((?:(?!\n[ \t]*\n)[\s\S])+?)\$\$|\\\[((?:(?!\n[ \t]*\n)[\s\S])+?)\\\])[ \t]*(?:\n+|$)/;
// `$` is also a currency: no space inside the marks, no digit after them.
const INLINE =
  /^(?:\$\$([^\n]+?)\$\$|\\\(([\s\S]+?)\\\)|\\\[([\s\S]+?)\\\]|\$(?![\s$])((?:\\.|[^\\\n$])+?)(?<!\s)\$(?!\d))/;

/** @type {any[]} */
export const mathExtensions = [
  {
    name: "mathBlock",
    level: "block",
    start: (/** @type {string} */ source) => /(?:^|\n)(?:\$\$|\\\[)/.exec(source)?.index,
    tokenizer(/** @type {string} */ source) {
      const match = BLOCK.exec(source);
      return match ? { type: "mathBlock", raw: match[0], text: (match[1] ?? match[2]).trim() } : undefined;
    },
    renderer: (/** @type {any} */ token) =>
      `<div class="formula" tabindex="0" role="group"><div class="math" data-display="true">${escapeTex(token.text)}</div></div>`,
  },
  {
    name: "mathInline",
    level: "inline",
    start: (/** @type {string} */ source) => /\$|\\\(|\\\[/.exec(source)?.index,
    tokenizer(/** @type {string} */ source) {
      const match = INLINE.exec(source);
      if (!match) return undefined;
      const isDisplay = match[1] !== undefined || match[3] !== undefined;
      return { type: "mathInline", raw: match[0], text: match[1] ?? match[2] ?? match[3] ?? match[4], isDisplay };
    },
    renderer: (/** @type {any} */ token) =>
      `<span class="math" data-display="${token.isDisplay}">${escapeTex(token.text)}</span>`,
  },
];

/** @type {any} */
let katex = null;
/** @type {Promise<void>|null} */
let loading = null;

async function loadKatex() {
  const sheet = document.createElement("link");
  sheet.rel = "stylesheet";
  sheet.href = document.querySelector("meta[name=math-stylesheet]")?.getAttribute("content") ?? "";
  document.head.append(sheet);
  katex = (await import("katex")).default;
}

/** Beyond these a formula stays as it was written: KaTeX recurses into groups, and takes a millisecond for ten signs. */
const MAX_CHARS = 4_000;
const MAX_DEPTH = 50;
/** So long the page may stand still; what is left is drawn after it was painted. */
const SLICE_MS = 8;

/** @type {HTMLElement[]} */
let waiting = [];
let isScheduled = false;

/** Draws every formula below `root`, many of them little by little; one that is not valid stays as it was written. @param {Element} root */
export function drawMath(root) {
  const formulas = /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll(".math:not([data-drawn])"));
  if (!formulas.length) return;
  waiting.push(...formulas);
  if (!katex) (loading ??= loadKatex()).then(drawWaiting);
  else if (!isScheduled) drawWaiting();
}

function drawWaiting() {
  const until = performance.now() + SLICE_MS;
  isScheduled = false;
  let at = 0;
  for (; at < waiting.length && performance.now() < until; at += 1) if (waiting[at].isConnected) drawFormula(waiting[at]);
  waiting = waiting.slice(at);
  if (!waiting.length) return;
  isScheduled = true;
  setTimeout(drawWaiting);
}

/** @param {string} tex */
export function isDrawable(tex) {
  if (tex.length > MAX_CHARS) return false;
  let depth = 0;
  let deepest = 0;
  for (const [sign] of tex.matchAll(/\\(?:left|begin)(?![a-z])|\\(?:right|end)(?![a-z])|\\.|[{}]/gs)) {
    if (sign === "{" || sign === "\\left" || sign === "\\begin") depth += 1;
    else if (sign === "}" || sign === "\\right" || sign === "\\end") depth -= 1;
    deepest = Math.max(deepest, depth);
  }
  return deepest <= MAX_DEPTH;
}

/** @param {HTMLElement} element */
function drawFormula(element) {
  const tex = element.textContent ?? "";
  if (!isDrawable(tex)) return;
  element.dataset.drawn = "true";
  try {
    katex.render(tex, element, {
      displayMode: element.dataset.display === "true",
      trust: false,
      maxExpand: 200,
      maxSize: 20,
      strict: "ignore",
    });
  } catch {
    // Not valid, or more than the stack holds: what is written is what is shown.
    element.textContent = tex;
    delete element.dataset.drawn;
  }
}
