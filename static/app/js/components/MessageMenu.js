/** What else can be done with a message. */

import { askToForgetMessage, pinMessage } from "../commands/keeping.js";
import { openRun } from "../commands/runs.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { Icon } from "./icons.js";
import { Menu } from "./Menu.js";

/** @typedef {import("../state/types.js").ViewMessage} ViewMessage */

/** @param {{message: ViewMessage}} props */
export function MessageMenu({ message }) {
  return html`<${Menu} label=${t("More")} className="icon-button is-small" align="start" items=${itemsOf(message)}><${Icon} name="dots" size=${16} /><//>`;
}

/** @param {ViewMessage} message @returns {import("./Menu.js").MenuItem[]} */
function itemsOf({ id, run, isPinned, isForgotten }) {
  /** @type {import("./Menu.js").MenuItem[]} */
  const ofRun = run ? [{ label: t("How it came about"), icon: "chart", onSelect: () => openRun(run.id) }] : [];
  const pin = { label: isPinned ? t("Unpin") : t("Pin in context"), icon: "pin", onSelect: () => pinMessage(id, !isPinned) };
  const forget = { label: t("Forget…"), icon: "trash", isDanger: true, onSelect: () => askToForgetMessage(id) };
  return isForgotten ? ofRun : [pin, ...ofRun, null, forget];
}

export const PinMark = () =>
  html`<p class="outcome"><${Icon} name="pin" size=${14} />${t("Pinned: always in context")}</p>`;
