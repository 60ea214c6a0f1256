/** The choice never to learn a forgotten text again, even if the user asks for it. */

import { html } from "../html.js";
import { t } from "../i18n.js";

/** @param {{choice: import("@preact/signals").Signal<boolean>}} props */
export function ForGood({ choice }) {
  return html`<label class="check-line"><input type="checkbox" checked=${choice.value} onChange=${(/** @type {any} */ event) => (choice.value = event.target.checked)} />
    <span>${t("Never learn it again, even if I ask for it")}</span></label>`;
}
