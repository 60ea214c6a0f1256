/** A new memory entry, below the message that was the newest then. */

import { undoRemembering } from "../commands/remembering.js";
import { plainText } from "../format.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { Icon } from "./icons.js";

/** @param {{note: import("../state/types.js").MemoryNote}} props */
export function MemoryLine({ note }) {
  return html`<p class="memory-line">
    <${Icon} name="memory" size=${16} />
    <span class="memory-text" title=${note.preview}>${note.isProposed ? t("To remember? {preview}", { preview: plainText(note.preview) }) : t("Remembered: {preview}", { preview: plainText(note.preview) })}</span>
    <span aria-hidden="true">·</span>
    ${note.isProposed ? html`<a href="/memory?view=review">${t("Review")}</a>` : html`<${Remembered} note=${note} />`}
  </p>`;
}

/** @param {{note: import("../state/types.js").MemoryNote}} props */
function Remembered({ note }) {
  return html`<button type="button" class="link" onClick=${() => undoRemembering(note.entryId)}>${t("Undo")}</button>
    <span aria-hidden="true">·</span>
    <a href=${`/memory?day=${encodeURIComponent(note.day)}#e-${note.entryId}`}>${t("Manage")}</a>`;
}
