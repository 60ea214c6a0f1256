/** LaTeX in Markdown: finds it while parsing, and draws it with KaTeX, which is loaded when first needed. */

const escapeTex = (/** @type {string} */ tex) => tex.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);

const BLOCK = /^(?:\$\$([\s\S]+?)\$\$|\\\[([\s\S]+?)\\\])[ \t]*(?:\n+|$)/;
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
    renderer: (/** @type {any} */ token) => `<div class="math" data-display="true">${escapeTex(token.text)}</div>`,
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

/** @returns {Promise<void>} */
async function loadKatex() {
  katex ??= (await import("katex")).default;
}

/** Draws every formula below `root`; one that is not valid stays as it was written. @param {Element} root */
export function drawMath(root) {
  const formulas = /** @type {HTMLElement[]} */ ([...root.querySelectorAll(".math:not([data-drawn])")]);
  if (!formulas.length) return;
  if (katex) formulas.forEach(drawFormula);
  else loadKatex().then(() => formulas.forEach(drawFormula));
}

/** @param {HTMLElement} element */
function drawFormula(element) {
  const tex = element.textContent ?? "";
  element.dataset.drawn = "true";
  katex.render(tex, element, {
    displayMode: element.dataset.display === "true",
    throwOnError: false,
    trust: false,
    maxExpand: 200,
    strict: "ignore",
  });
}
