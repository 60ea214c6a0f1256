/** What a person can set: the theme, the account's pages, and tokens for programs. */

import { boot } from "../boot.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { ThemeSwitch } from "./AccountRow.js";
import { Dialog } from "./Dialog.js";
import { TokenSettings } from "./TokenSettings.js";

const ACCOUNT_PAGES = [
  ["Change password", "/accounts/password/change/"],
  ["Two-factor sign-in", "/accounts/2fa/"],
  ["Signed-in devices", "/accounts/sessions/"],
];

export function SettingsDialog() {
  return html`<${Dialog} title=${t("Settings")}>
    <section class="setting">
      <div><h3>${t("Theme")}</h3><p>${t("Light, dark, or as the system has it.")}</p></div>
      <${ThemeSwitch} />
    </section>
    <section class="setting">
      <div><h3>${t("Account")}</h3><p>${boot.user.email}</p></div>
      <ul class="setting-links">${ACCOUNT_PAGES.map(([name, address]) => html`<li><a href=${address}>${t(name)}</a></li>`)}</ul>
    </section>
    <${TokenSettings} />
    <p class="fine-print">${boot.product_name} ${boot.version}</p>
  <//>`;
}
