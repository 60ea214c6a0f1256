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

/** Notices of the page outside of dialogs: what is outside of an open one cannot be used. */
export const PageToasts = () => modals.value === 0 && html`<${Toasts} />`;

/** Where the focus was before the first of dialogs that took each other's place. @type {HTMLElement|null} */
let home = null;

/** For a `dialog` element: it is modal, and above everything, from its first drawing on; then the focus returns. */
export function useModal() {
  const dialog = useRef(/** @type {HTMLDialogElement|null} */ (null));
  useLayoutEffect(() => {
    const element = /** @type {HTMLDialogElement} */ (dialog.current);
    // The one before may have gone with the focus.
    if (document.activeElement !== document.body) home = /** @type {HTMLElement|null} */ (document.activeElement);
    const before = home;
    element.showModal();
    modals.value += 1;
    return () => {
      modals.value -= 1;
      element.close(); // what is behind an open one takes no focus
      before?.focus();
    };
  }, []);
  return dialog;
}

/** @param {{title: string, children: any, className?: string}} props */
export function Dialog({ title, children, className = "" }) {
  const dialog = useModal();
  const shown = ui.value.dialog;
  // The browser tells late that it was closed: it may be gone, and another one open by then.
  const noteClosed = () => dialog.current && ui.value.dialog === shown && closeDialog();
  /** Both ends of the press: text that is selected beyond the edge ends, or begins, outside. */
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
