/** Renders a block of Markdown to HTML with limited nesting. Makes strings, not DOM. */

import { Lexer, Marked } from "marked";
import { BlockReader } from "./blocks.js";
import { footnoteExtensions } from "./footnotes.js";
import { t } from "./i18n.js";
import { mathExtensions } from "./math.js";

/** @typedef {import("./blocks.js").Block} Block */
/** @typedef {import("./blocks.js").Links} Links */

const marked = new Marked({ gfm: true, breaks: true });

/** @param {string} text */
export const escapeHtml = (text) => text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);

marked.use({
  extensions: [...mathExtensions, ...footnoteExtensions],
  renderer: {
    // Allow no raw HTML: show tags as text.
    html: (token) => escapeHtml(token.text),
    // Do not load remote images: their server would learn that, and when, this was read.
    image: (token) => remoteImage(token.href, token.text),
    code: (token) =>
      `<pre data-language="${escapeHtml(languageOf(token.lang))}"><code>${escapeHtml(token.text)}</code></pre>`,
    // The checkbox cannot be ticked. Its label is for screen readers.
    checkbox: ({ checked }) =>
      `<input type="checkbox" disabled${checked ? " checked" : ""} aria-label="${escapeHtml(checked ? t("Done") : t("To do"))}">`,
    table(token) {
      const cells = (/** @type {any[]} */ row, /** @type {string} */ tag) =>
        row.map((cell) => {
          const align = cell.align ? ` align="${cell.align}"` : "";
          return `<${tag}${align}>${this.parser.parseInline(cell.tokens)}</${tag}>`;
        });
      const head = `<thead><tr>${cells(token.header, "th").join("")}</tr></thead>`;
      const rows = token.rows.map((row) => `<tr>${cells(row, "td").join("")}</tr>`).join("");
      return `<div class="table-scroll" tabindex="0" role="group"><table>${head}<tbody>${rows}</tbody></table></div>`;
    },
  },
});

/** @param {string} href @param {string} alt */
function remoteImage(href, alt) {
  const label = alt ? escapeHtml(alt) : t("Image");
  return `<button type="button" class="remote-image" data-src="${escapeHtml(href)}">${label}</button>`;
}

/** @param {string|undefined} info the words after the fence */
const languageOf = (info) => (info ?? "").trim().split(/\s+/)[0] ?? "";

/** Show deeper quotes, lists and emphasis as written: each level costs stack and another parse of its text. */
const MAX_DEPTH = 16;

class BoundedLexer extends Lexer {
  depth = 0;

  /** @param {string} source @param {any[]} [tokens] @param {boolean} [isCut] @returns {any} */
  blockTokens(source, tokens = [], isCut) {
    return this.deeper(source, tokens, () => super.blockTokens(source, tokens, isCut));
  }

  /** @param {string} source @param {any[]} [tokens] @returns {any} */
  inlineTokens(source, tokens = []) {
    return this.deeper(source, tokens, () => super.inlineTokens(source, tokens));
  }

  /** @param {string} source @param {any[]} tokens @param {() => any[]} parse */
  deeper(source, tokens, parse) {
    if (this.depth >= MAX_DEPTH) {
      tokens.push({ type: "text", raw: source, text: source, escaped: false });
      return tokens;
    }
    this.depth += 1;
    try {
      return parse();
    } finally {
      this.depth -= 1;
    }
  }
}

/** @param {Links|null} links */
function lexerWith(links) {
  const lexer = new BoundedLexer(marked.defaults);
  if (links) lexer.tokens.links = links;
  return lexer;
}

/** Return the HTML of a block that is not code, not yet sanitised. @param {Block} block */
export function htmlOf({ kind, head, raw, links }) {
  if (!raw.trim()) return "";
  const lexer = lexerWith(links);
  if (kind === "line") return `<p>${marked.Parser.parseInline(lexer.inlineTokens(raw), marked.defaults)}</p>`;
  return marked.parser(lexer.lex(head + raw));
}

/** Return a reader of one text, to be called each time the text has grown. */
export const readMarkdown = () => new BlockReader((raw, links) => void lexerWith(links).lex(raw));
