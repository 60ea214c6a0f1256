/** Text as it was written, of any length. The browser lays out only the pieces near the window. */

import { html, memo } from "../html.js";
import { cutText, TEXT_CHARS } from "../pieces.js";

const LINE_CHARS = 80;

export const PlainText = memo(function PlainText(/** @type {{text: string}} */ { text }) {
  if (text.length <= TEXT_CHARS) return text;
  return cutText(text).map(
    (piece, at) =>
      html`<span key=${at} class="text-piece" style=${{ containIntrinsicBlockSize: `auto ${Math.ceil(piece.length / LINE_CHARS)}lh` }}>${piece}</span>`,
  );
});
