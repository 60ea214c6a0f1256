/** Short notices that disappear by themselves, some with an undo. They lie above everything that is open. */

import { useEffect, useRef } from "preact/hooks";
import { errorText } from "../commands/conversations.js";
import { html } from "../html.js";
import { hideToast, showToast, ui } from "../state/store.js";

export function Toasts() {
  const list = useRef(/** @type {HTMLElement|null} */ (null));
  const { toasts } = ui.value;
  useEffect(() => {
    // Show the list again, so that it lies above what was opened since.
    list.current?.hidePopover();
    list.current?.showPopover();
  }, [toasts.at(-1)?.id]);
  return html`<div ref=${list} class="toasts" role="status" popover="manual">${toasts.map((toast) => html`<${Toast} key=${toast.id} toast=${toast} />`)}</div>`;
}

/** @param {{toast: import("../state/types.js").Toast}} props */
function Toast({ toast: { id, text, tone, action } }) {
  const act = async () => {
    hideToast(id);
    try {
      await action?.run();
    } catch (error) {
      showToast(errorText(error), "bad");
    }
  };
  return html`<p class=${`toast ${tone === "bad" ? "is-bad" : ""}`}>${text}
    ${action && html`<button type="button" class="toast-action" onClick=${act}>${action.name}</button>`}</p>`;
}
