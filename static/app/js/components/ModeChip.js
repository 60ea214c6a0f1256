/** The choice of how the next message is answered: by one loop with tools, a plan of steps, or whichever fits. */

import { changeConversation } from "../commands/conversations.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { currentId, currentMode, dispatch } from "../state/store.js";
import { Icon } from "./icons.js";
import { Menu } from "./Menu.js";

/** @typedef {import("../state/types.js").Mode} Mode */

/** @type {{mode: Mode, name: string, note: string}[]} */
const MODES = [
  { mode: "auto", name: t("Auto"), note: t("A plan where the question has several parts") },
  { mode: "plan", name: t("Plan"), note: t("Steps planned first, then worked on side by side") },
  { mode: "react", name: t("Direct"), note: t("One step after the other, with tools") },
];

export function ModeChip() {
  const chosen = currentMode.value;
  const items = MODES.map(({ mode, name, note }) => ({
    label: name,
    note,
    isChecked: mode === chosen,
    onSelect: () => choose(mode),
  }));
  const name = MODES.find((one) => one.mode === chosen)?.name ?? chosen;
  return html`<${Menu} label=${t("Modes")} title=${t("How it is answered")} className="chip" align="start" items=${items} isNamedByText>
    <${Icon} name=${chosen === "react" ? "spark" : "plan"} size=${16} /><span class="visually-hidden">${t("Mode:")}</span><span>${name}</span>
  <//>`;
}

/** @param {Mode} mode */
function choose(mode) {
  if (currentId.value) changeConversation(currentId.value, { mode });
  else dispatch({ type: "mode/chosen", mode });
}
