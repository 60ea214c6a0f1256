/** "‹ 2/3 ›": switches to another version of a message, and to the branch below it. */

import { showSibling } from "../commands/branches.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { Icon } from "./icons.js";

/** @param {{message: import("../state/types.js").ViewMessage, isRunning: boolean}} props */
export function Siblings({ message: { id, siblings }, isRunning }) {
  if (siblings.length < 2) return null;
  const at = siblings.indexOf(id);
  const turn = (/** @type {number} */ to, /** @type {string} */ icon, /** @type {string} */ label) => html`<button type="button"
    class="icon-button is-small" aria-label=${label} title=${label} disabled=${isRunning || !siblings[to]}
    onClick=${() => showSibling(siblings[to])}><${Icon} name=${icon} size=${16} /></button>`;
  return html`<span class="siblings" role="group" aria-label=${t("Versions of this message")}>
    ${turn(at - 1, "left", t("Version before"))}
    <span aria-label=${t("Version {at} of {n}", { at: at + 1, n: siblings.length })} role="img">${at + 1}/${siblings.length}</span>
    ${turn(at + 1, "right", t("Next version"))}
  </span>`;
}
