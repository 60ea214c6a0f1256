/** Markdown to blocks, so that a growing text re-renders only its last one. Makes strings, not DOM. */

import { Marked } from "marked";
import { mathExtensions } from "./math.js";

/**
 * @typedef {{key: number, kind: "html"|"code"|"math", raw: string, html: string, code: string, language: string,
 *   isOpen: boolean}} Block
 * @typedef {{text: string, blocks: Block[], isFinal: boolean}} Parsed
 */

const marked = new Marked({ gfm: true, breaks: true });

/** @param {string} text */
export const escapeHtml = (text) => text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);

marked.use({
  extensions: mathExtensions,
  renderer: {
    // No raw HTML: what looks like a tag is shown as text.
    html: (token) => escapeHtml(token.text),
    // Loading it would tell its server that, and when, this was read.
    image: (token) => remoteImage(token.href, token.text),
    code: (token) =>
      `<pre data-language="${escapeHtml(languageOf(token.lang))}"><code>${escapeHtml(token.text)}</code></pre>`,
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
  const label = alt ? escapeHtml(alt) : "Image";
  return `<button type="button" class="remote-image" data-src="${escapeHtml(href)}">${label}</button>`;
}

/** @param {string|undefined} info the words after the fence */
const languageOf = (info) => (info ?? "").trim().split(/\s+/)[0] ?? "";

/** @param {any} token @param {number} key @returns {Block} */
function blockOf(token, key) {
  const block = { key, raw: token.raw, html: "", code: "", language: "", isOpen: false };
  if (token.type === "code") {
    return {
      ...block,
      kind: "code",
      code: token.text,
      language: languageOf(token.lang),
      isOpen: isOpenFence(token.raw),
    };
  }
  if (token.type === "mathBlock") return { ...block, kind: "math", code: token.text };
  return { ...block, kind: "html", html: marked.parser([token]) };
}

/** @param {string} raw */
function isOpenFence(raw) {
  const fence = /^ {0,3}(`{3,}|~{3,})/.exec(raw)?.[1];
  return fence !== undefined && !raw.trimEnd().slice(fence.length).endsWith(fence);
}

/**
 * The blocks of `text`. When it continues `previous`, all blocks but the last stay the same objects; the
 * last may still grow. A final text with link definitions is read anew, as they may stand below their use.
 * @param {string} text @param {Parsed} [previous] @param {boolean} [isFinal] @returns {Parsed}
 */
export function parseBlocks(text, previous, isFinal = true) {
  if (previous && previous.text === text && previous.isFinal === isFinal) return previous;
  const kept = previous && text.startsWith(previous.text) ? previous.blocks.slice(0, -1) : [];
  const keptChars = kept.reduce((sum, block) => sum + block.raw.length, 0);
  const tokens = marked.lexer(text.slice(keptChars));
  if (isFinal && kept.length && Object.keys(/** @type {any} */ (marked.lexer(text)).links ?? {}).length) {
    return { text, isFinal, blocks: toBlocks(marked.lexer(text), []) };
  }
  const blocks = toBlocks(tokens, kept);
  const last = blocks[blocks.length - 1];
  const known = previous?.blocks[blocks.length - 1];
  if (last && known && known.raw === last.raw && known.isOpen === last.isOpen) blocks[blocks.length - 1] = known;
  return { text, isFinal, blocks };
}

/** Blank lines go with the block before them. @param {any} tokens @param {Block[]} kept @returns {Block[]} */
function toBlocks(tokens, kept) {
  const blocks = [...kept];
  for (const token of tokens) {
    const last = blocks[blocks.length - 1];
    const isSilent = token.type === "space" || token.type === "def";
    if (isSilent && last && last !== kept[kept.length - 1])
      blocks[blocks.length - 1] = { ...last, raw: last.raw + token.raw };
    else blocks.push(isSilent ? silentBlock(token, blocks.length) : blockOf(token, blocks.length));
  }
  return blocks;
}

/** @param {any} token @param {number} key @returns {Block} */
const silentBlock = (token, key) => ({
  key,
  kind: "html",
  raw: token.raw,
  html: "",
  code: "",
  language: "",
  isOpen: false,
});
