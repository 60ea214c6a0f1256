/** The list of the shortcuts in `keyboard.js`. */

import { html } from "../html.js";
import { t } from "../i18n.js";
import { SHORTCUTS } from "../keyboard.js";
import { Dialog } from "./Dialog.js";

export function ShortcutsDialog() {
  return html`<${Dialog} title=${t("Keyboard shortcuts")} className="is-small">
    <dl class="shortcuts">
      ${SHORTCUTS.map(
        ({ keys, name }) => html`<div>
        <dt>${name}</dt>
        <dd>${keys.map((key) => html`<kbd>${key}</kbd>`)}</dd>
      </div>`,
      )}
    </dl>
  <//>`;
}
