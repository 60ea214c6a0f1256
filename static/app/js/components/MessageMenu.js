/** What else can be done with a message. */

import { askToForgetMessage } from "../commands/keeping.js";
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
function itemsOf({ id, run, isForgotten }) {
  /** @type {import("./Menu.js").MenuItem[]} */
  const ofRun = run ? [{ label: t("How it came about"), icon: "chart", onSelect: () => openRun(run.id) }] : [];
  const forget = { label: t("Forget…"), icon: "trash", isDanger: true, onSelect: () => askToForgetMessage(id) };
  return isForgotten ? ofRun : [...ofRun, forget];
}
