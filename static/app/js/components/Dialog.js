/** A modal dialog: the browser's own, which keeps the focus inside and closes on Esc. */

import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { changeUi, ui } from "../state/store.js";
import { Icon } from "./icons.js";
import { Toasts } from "./Toasts.js";

export const closeDialog = () => changeUi({ dialog: null });

const modals = signal(0);

/** Render the toasts outside dialogs, but not while a dialog is open, because nothing outside of it can be used. */
export const PageToasts = () => modals.value === 0 && html`<${Toasts} />`;

/** Where the focus was before the first of several dialogs that replaced each other. @type {HTMLElement|null} */
let home = null;

/**
 * Return the ref of a `dialog` element, which is modal from its first rendering on, and returns the focus at its end.
 */
export function useModal() {
  const dialog = useRef(/** @type {HTMLDialogElement|null} */ (null));
  useLayoutEffect(() => {
    const element = /** @type {HTMLDialogElement} */ (dialog.current);
    // The previous dialog may have been removed with the focus.
    if (document.activeElement !== document.body) home = /** @type {HTMLElement|null} */ (document.activeElement);
    const before = home;
    element.showModal();
    modals.value += 1;
    return () => {
      modals.value -= 1;
      element.close(); // elements behind an open dialog cannot take the focus
      before?.focus();
    };
  }, []);
  return dialog;
}

/** @param {{title: string, children: any, className?: string}} props */
export function Dialog({ title, children, className = "" }) {
  const dialog = useModal();
  const shown = ui.value.dialog;
  // The browser reports the closing late: this dialog may be gone then, and another one open.
  const noteClosed = () => dialog.current && ui.value.dialog === shown && closeDialog();
  /** Whether a press began and ended outside: a selection of text may begin or end beyond the edge. */
  const isOutside = useRef(false);
  const notePress = (/** @type {PointerEvent} */ event) => (isOutside.current = event.target === dialog.current);
  const noteRelease = (/** @type {PointerEvent} */ event) => (isOutside.current &&= event.target === dialog.current);
  const closeOutside = (/** @type {MouseEvent} */ event) => event.target === dialog.current && isOutside.current && closeDialog();
  return html`<dialog ref=${dialog} class=${`dialog ${className}`} aria-labelledby="dialog-title"
    onClose=${noteClosed} onPointerDown=${notePress} onPointerUp=${noteRelease} onClick=${closeOutside}>
    <div class="dialog-body">
      <header class="dialog-head">
        <h2 id="dialog-title">${title}</h2>
        <button type="button" class="icon-button" aria-label=${t("Close")} onClick=${closeDialog}><${Icon} name="close" /></button>
      </header>
      ${children}
    </div>
    <${Toasts} />
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
