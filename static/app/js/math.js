/** LaTeX in Markdown: finds formulas while parsing, and draws them with KaTeX, which loads on first use. */

const escapeTex = (/** @type {string} */ tex) => tex.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);

// As in LaTeX, a formula contains no blank line: a block of Markdown ends there.
const BLOCK = /^(?:\$\$((?:(?!\n[ \t]*\n)[\s\S])+?)\$\$|\\\[((?:(?!\n[ \t]*\n)[\s\S])+?)\\\])[ \t]*(?:\n+|$)/;
// `$` is also a currency sign, so allow no space inside the marks and no digit after them.
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

/**
 * Leave a formula beyond these limits as written: KaTeX recurses into groups, and needs a millisecond for ten
 * characters.
 */
const MAX_CHARS = 4_000;
const MAX_DEPTH = 50;
/** The longest time for which drawing may block the page. The rest is drawn after a repaint. */
const SLICE_MS = 8;

/** @type {HTMLElement[]} */
let waiting = [];
let isScheduled = false;

/** Draw every formula below `root`, in slices of time. An invalid formula stays as written. @param {Element} root */
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
    // The formula is invalid or too deep for the stack: show it as written.
    element.textContent = tex;
    delete element.dataset.drawn;
  }
}
