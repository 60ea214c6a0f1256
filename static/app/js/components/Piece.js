/** One message of a request: its role, its source, its length, and its whole text. */

import { exact } from "../format.js";
import { html } from "../html.js";
import { t } from "../i18n.js";

/** @param {{piece: any}} props */
export function Piece({ piece }) {
  const text = textOfContent(piece.content) || t("(your next question)");
  return html`<li class="piece">
    <details>
      <summary>
        <span class="piece-role">${piece.role}</span>
        <span class="piece-text">${text.slice(0, 120)}</span>
        <span class="piece-tokens">${exact(piece.tokens)}</span>
      </summary>
      <p class="piece-source">${sourceName(piece.source)}</p>
      <pre>${text}</pre>
    </details>
  </li>`;
}

/** @param {string|{type: string, [field: string]: any}[]} content */
function textOfContent(content) {
  if (typeof content === "string") return content;
  return content.map((part) => part.text ?? (part.type === "image" ? t("[image]") : JSON.stringify(part))).join("\n");
}

/** @param {unknown} source */
function sourceName(source) {
  if (typeof source === "string") return source;
  const { kind, ...rest } = /** @type {any} */ (source ?? {});
  return [kind, ...Object.values(rest).filter((value) => typeof value !== "object")].filter(Boolean).join(" · ");
}
