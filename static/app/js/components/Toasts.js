/** Short notices that go away by themselves; some offer the way back. */

import { html } from "../html.js";
import { hideToast, ui } from "../state/store.js";

export function Toasts() {
  return html`<div class="toasts" role="status">${ui.value.toasts.map((toast) => html`<${Toast} key=${toast.id} toast=${toast} />`)}</div>`;
}

/** @param {{toast: import("../state/types.js").Toast}} props */
function Toast({ toast: { id, text, tone, action } }) {
  const act = () => {
    hideToast(id);
    action?.run();
  };
  return html`<p class=${`toast ${tone === "bad" ? "is-bad" : ""}`}>${text}
    ${action && html`<button type="button" class="toast-action" onClick=${act}>${action.name}</button>`}</p>`;
}
