/** Short notices that go away by themselves. */

import { html } from "../html.js";
import { ui } from "../state/store.js";

export function Toasts() {
  return html`<div class="toasts" role="status">
    ${ui.value.toasts.map((toast) => html`<p key=${toast.id} class=${`toast ${toast.tone === "bad" ? "is-bad" : ""}`}>${toast.text}</p>`)}
  </div>`;
}
