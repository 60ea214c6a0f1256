/** Asks before an action that cannot be undone, in place of the pressed button. */

import { useEffect, useRef } from "preact/hooks";
import { html } from "../html.js";
import { t } from "../i18n.js";

/** @param {{text: string, action: string, onConfirm: () => unknown, onCancel: () => void}} props */
export function AskFirst({ text, action, onConfirm, onCancel }) {
  const cancel = useRef(/** @type {HTMLButtonElement|null} */ (null));
  useEffect(() => cancel.current?.focus(), []);
  return html`<div class="ask-first" role="group" aria-label=${text}>
    <p>${text}</p>
    <div class="dialog-actions">
      <button type="button" ref=${cancel} class="button is-small" onClick=${onCancel}>${t("Cancel")}</button>
      <button type="button" class="button is-small is-danger" onClick=${onConfirm}>${action}</button>
    </div>
  </div>`;
}
