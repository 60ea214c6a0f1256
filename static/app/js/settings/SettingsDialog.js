/** The settings of the user and of their account. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { allowNotifications } from "../attention/store.js";
import { boot } from "../boot.js";
import { errorText } from "../commands/conversations.js";
import { loadMemorySettings } from "../commands/memory_settings.js";
import { ThemeSwitch } from "../components/AccountRow.js";
import { Dialog } from "../components/Dialog.js";
import { MemorySwitches } from "../components/memory/MemorySwitches.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { Choice } from "./Choice.js";
import { DeleteAccount } from "./DeleteAccount.js";
import { InstructionsSetting } from "./InstructionsSetting.js";
import { OwnUsage } from "./OwnUsage.js";
import { changeSettings, personal } from "./store.js";
import { TokenSettings } from "./TokenSettings.js";

/** @typedef {import("./store.js").Settings} Settings */
/** @typedef {(change: Partial<Settings>) => Promise<boolean>} Change */

const ACCOUNT_PAGES = [
  [t("Change password"), "/accounts/password/change/"],
  [t("Two-factor sign-in"), "/accounts/2fa/"],
  [t("Signed-in devices"), "/accounts/sessions/"],
];
/**
 * Each language is named in itself, so that users find theirs without reading the page's language.
 * @type {[string, string][]}
 */
const LANGUAGES = [
  ["", t("Same as the browser")],
  ["en", "English"],
  ["zh-hans", "中文"],
];
/** @type {[string, string][]} */
const SIZES = [
  ["small", t("Small")],
  ["normal", t("Normal")],
  ["large", t("Large")],
];
/** @type {[string, string][]} */
const WIDTHS = [
  ["normal", t("Normal")],
  ["wide", t("Wide")],
];
/** @type {[string, string][]} */
const SEND_KEYS = [
  ["enter", "Enter"],
  ["ctrl_enter", "Ctrl/⌘ + Enter"],
];

export function SettingsDialog() {
  const problem = useSignal("");
  useEffect(() => void loadMemorySettings(), []);
  /** @type {Change} */
  const change = async (values) => {
    try {
      await changeSettings(values);
      problem.value = "";
    } catch (error) {
      problem.value = errorText(error);
    }
    return !problem.value;
  };
  return html`<${Dialog} title=${t("Settings")}>
    ${problem.value && html`<p class="form-error" role="alert">${problem.value}</p>`}
    <${PageSettings} change=${change} />
    <${InstructionsSetting} change=${change} />
    <section class="setting is-stacked"><h3>${t("Memory")}</h3><${MemorySwitches} /></section>
    <${OwnUsage} />
    <${TokenSettings} />
    <${Account} />
    <p class="fine-print">${boot.product_name} ${boot.version}</p>
  <//>`;
}

/** Render the settings of appearance and input. @param {{change: Change}} props */
function PageSettings({ change }) {
  const { language, text_size: size, text_width: width, send_key: key, notifications } = personal.value;
  const choose = (/** @type {keyof Settings} */ name) => (/** @type {string} */ value) => change({ [name]: value || null });
  const switchNotifications = async (/** @type {boolean} */ on) => {
    // The browser shows its prompt only if the user has not decided yet.
    if ((await change({ notifications: on })) && on) await allowNotifications();
  };
  return html`<${Choice} title=${t("Language")} name="language" value=${language ?? ""} options=${LANGUAGES} onChoose=${choose("language")} />
    <section class="setting">
      <div><h3>${t("Theme")}</h3><p>${t("Light, dark, or as your system is set.")}</p></div>
      <${ThemeSwitch} />
    </section>
    <${Choice} title=${t("Text size")} name="text_size" value=${size} options=${SIZES} onChoose=${choose("text_size")} />
    <${Choice} title=${t("Text width")} name="text_width" value=${width} options=${WIDTHS} onChoose=${choose("text_width")} />
    <${Choice} title=${t("Send with")} note=${t("Shift+Enter always begins a new line.")} name="send_key" value=${key} options=${SEND_KEYS} onChoose=${choose("send_key")} />
    <section class="setting is-stacked"><label class="switch">
      <span><strong>${t("Notifications")}</strong><small>${t("When an answer is done and this page is not in view, where the browser allows it.")}</small></span>
      <input type="checkbox" role="switch" checked=${notifications} onChange=${(/** @type {any} */ event) => switchNotifications(event.target.checked)} />
    </label></section>`;
}

function Account() {
  return html`<section class="setting">
      <div><h3>${t("Account")}</h3><p>${boot.user.email}</p></div>
      <ul class="setting-links">${ACCOUNT_PAGES.map(([name, address]) => html`<li><a href=${address}>${name}</a></li>`)}
        <li><a href="/api/v1/export" download>${t("Export everything")}</a></li></ul>
    </section>
    <section class="setting is-stacked">
      <div><h3>${t("Delete account")}</h3><p>${t("Export everything first if you may want it again.")}</p></div>
      <${DeleteAccount} />
    </section>`;
}
