/**
 * Footnotes in Markdown: `[^1]` in the text and `[^1]: the note` as a block, each with a button that leads to the
 * other.
 */

import { t } from "./i18n.js";

const REFERENCE = /^\[\^([^\]\s]{1,40})\](?!:)/;
const NOTE = /^ {0,3}\[\^([^\]\s]{1,40})\]:[ \t]*([^\n]*(?:\n(?! {0,3}\[\^)[^\n]+)*)(?:\n+|$)/;

/** @param {string} text */
const escapeLabel = (text) => text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);

/** @type {any[]} extensions for marked */
export const footnoteExtensions = [
  {
    name: "footnote",
    level: "block",
    start: (/** @type {string} */ source) => /(?:^|\n) {0,3}\[\^/.exec(source)?.index,
    tokenizer(/** @type {string} */ source) {
      const match = NOTE.exec(source);
      if (!match) return undefined;
      return { type: "footnote", raw: match[0], label: match[1], tokens: this.lexer.inlineTokens(match[2]) };
    },
    renderer(/** @type {any} */ { label, tokens }) {
      const text = this.parser.parseInline(tokens);
      return `<div class="footnote" data-note="${escapeLabel(label)}" tabindex="-1"><button type="button" class="footnote-mark" data-back="${escapeLabel(label)}">${escapeLabel(label)}</button> ${text}</div>`;
    },
  },
  {
    name: "footnoteReference",
    level: "inline",
    start: (/** @type {string} */ source) => source.indexOf("[^"),
    tokenizer(/** @type {string} */ source) {
      const match = REFERENCE.exec(source);
      return match ? { type: "footnoteReference", raw: match[0], label: match[1] } : undefined;
    },
    renderer: (/** @type {any} */ { label }) =>
      `<sup><button type="button" class="footnote-mark" data-to="${escapeLabel(label)}">${escapeLabel(label)}</button></sup>`,
  },
];

/** Label the footnote marks for screen readers. @param {HTMLElement} root */
export function nameFootnotes(root) {
  for (const mark of /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll(".footnote-mark"))) {
    const { to, back } = mark.dataset;
    mark.setAttribute("aria-label", to === undefined ? t("Back from footnote {label}", { label: back ?? "" }) : t("Footnote {label}", { label: to }));
  }
}

/** Move from a mark to its note in the same text, or back to the first mark. @param {MouseEvent} event */
export function followFootnote(event) {
  const mark = /** @type {HTMLElement|null} */ (/** @type {HTMLElement} */ (event.target).closest(".footnote-mark"));
  const text = mark?.closest(".prose");
  if (!mark || !text) return;
  const { to, back } = mark.dataset;
  const goal = /** @type {HTMLElement|null} */ (
    to === undefined ? text.querySelector(`[data-to="${CSS.escape(back ?? "")}"]`) : text.querySelector(`[data-note="${CSS.escape(to)}"]`)
  );
  goal?.scrollIntoView({ block: "center" });
  goal?.focus({ preventScroll: true });
}
