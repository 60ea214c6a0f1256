/** Three switches for what is remembered at all. */

import { changeMemorySettings } from "../../commands/memory_settings.js";
import { html } from "../../html.js";
import { t } from "../../i18n.js";
import { memorySettings } from "../../state/memory.js";
import { Icon } from "../icons.js";

/** @typedef {import("../../state/memory.js").MemorySettings} MemorySettings */

/** @type {{name: keyof MemorySettings, label: string, note: string}[]} */
const SWITCHES = [
  { name: "paused", label: t("Pause memory"), note: t("Nothing is remembered, and chats don't use memories of other chats.") },
  { name: "review", label: t("Ask me first"), note: t("Extracted memories wait for your approval.") },
  { name: "profile", label: t("Use the profile"), note: t("The profile is used in every chat.") },
];

export function MemorySwitches() {
  const settings = memorySettings.value;
  if (!settings) return null;
  return html`<section class="memory-switches" aria-label=${t("Memory")}>
    ${SWITCHES.map(
      ({ name, label, note }) => html`<label class="switch">
        <span><strong>${label}</strong><small>${note}</small></span>
        <input type="checkbox" role="switch" checked=${settings[name]} onChange=${(/** @type {any} */ event) => changeMemorySettings({ [name]: event.target.checked })} />
      </label>`,
    )}
    <a class="memory-link" href="/api/v1/memory/export" download><${Icon} name="export" size=${18} />${t("Export as Markdown")}</a>
  </section>`;
}
