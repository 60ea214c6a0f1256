/** The sentence in which something was found, with the search terms marked. */

import { html } from "../html.js";

/** @param {{spans: import("./commands.js").Span[]}} props */
export const Excerpt = ({ spans }) =>
  html`<span class="excerpt" dir="auto">${spans.map(({ text, is_hit: isHit }) => (isHit ? html`<mark>${text}</mark>` : text))}</span>`;
