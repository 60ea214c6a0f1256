/** What is remembered at all: three switches. */

import { changeMemorySettings } from "../../commands/memory_settings.js";
import { html } from "../../html.js";
import { t } from "../../i18n.js";
import { memorySettings } from "../../state/memory.js";
import { Icon } from "../icons.js";

/** @typedef {import("../../state/memory.js").MemorySettings} MemorySettings */

/** @type {{name: keyof MemorySettings, label: string, note: string}[]} */
const SWITCHES = [
  { name: "paused", label: "Pause memory", note: "Nothing is learned, and chats know nothing of each other." },
  { name: "review", label: "Ask me first", note: "What is extracted waits for your approval." },
  { name: "profile", label: "Use the profile", note: "Every chat is told of it." },
];

export function MemorySwitches() {
  const settings = memorySettings.value;
  if (!settings) return null;
  return html`<section class="memory-switches" aria-label=${t("Settings")}>
    ${SWITCHES.map(
      ({ name, label, note }) => html`<label class="switch">
        <span><strong>${t(label)}</strong><small>${t(note)}</small></span>
        <input type="checkbox" role="switch" checked=${settings[name]} onChange=${(/** @type {any} */ event) => changeMemorySettings({ [name]: event.target.checked })} />
      </label>`,
    )}
    <a class="memory-link" href="/api/v1/memory/export" download><${Icon} name="export" size=${18} />${t("Export as Markdown")}</a>
  </section>`;
}
