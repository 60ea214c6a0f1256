/** A modal dialog: the browser's own, which keeps the focus inside and closes on Esc. */

import { useEffect, useRef } from "preact/hooks";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { changeUi, ui } from "../state/store.js";
import { Icon } from "./icons.js";

export const closeDialog = () => changeUi({ dialog: null });

/** @param {{title: string, children: any, className?: string}} props */
export function Dialog({ title, children, className = "" }) {
  const dialog = useRef(/** @type {HTMLDialogElement|null} */ (null));
  useEffect(() => {
    const before = /** @type {HTMLElement|null} */ (document.activeElement);
    dialog.current?.showModal();
    return () => before?.focus?.();
  }, []);
  const shown = ui.value.dialog;
  // The browser tells late that Esc closed it: another one may be open by then.
  const noteClosed = () => ui.value.dialog === shown && closeDialog();
  const closeOutside = (/** @type {MouseEvent} */ event) => event.target === dialog.current && closeDialog();
  return html`<dialog ref=${dialog} class=${`dialog ${className}`} aria-labelledby="dialog-title"
    onClose=${noteClosed} onClick=${closeOutside}>
    <div class="dialog-body">
      <header class="dialog-head">
        <h2 id="dialog-title">${title}</h2>
        <button type="button" class="icon-button" aria-label=${t("Close")} onClick=${closeDialog}><${Icon} name="close" /></button>
      </header>
      ${children}
    </div>
  </dialog>`;
}

/** @param {{title: string, text: string, action: string, onConfirm: () => void}} props */
export function ConfirmDialog({ title, text, action, onConfirm }) {
  const confirm = () => {
    closeDialog();
    onConfirm();
  };
  return html`<${Dialog} title=${title} className="is-small">
    <p>${text}</p>
    <div class="dialog-actions">
      <button type="button" class="button" onClick=${closeDialog}>${t("Cancel")}</button>
      <button type="button" class="button is-danger" onClick=${confirm}>${action}</button>
    </div>
  <//>`;
}
