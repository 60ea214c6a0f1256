/** The signed-in user, with a menu of what belongs to the user rather than to a conversation. */

import { boot } from "../boot.js";
import { loadListing } from "../commands/conversations.js";
import { signOut } from "../commands/session.js";
import { openFolderDialog } from "../folders/commands.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { changeUi } from "../state/store.js";
import { chooseTheme, theme } from "../theme.js";
import { openTrash } from "../trash/commands.js";
import { Icon } from "./icons.js";
import { Menu } from "./Menu.js";

const THEMES = /** @type {const} */ ([
  ["light", "sun"],
  ["dark", "moon"],
  ["system", "system"],
]);
const THEME_NAMES = { light: t("Light"), dark: t("Dark"), system: t("Same as the system") };

export function AccountRow() {
  const { name, email } = boot.user;
  const shown = name || email;
  return html`<footer class="account">
    <${Menu} label=${t("Account of {name}", { name: shown })} title=${email} className="account-button" align="start" isNamedByText
      items=${accountItems()} heading=${html`<${ThemeSwitch} />`}>
      <span class="avatar" data-letter=${[...shown][0]?.toUpperCase()}></span>
      <span class="account-name">${shown}</span>
      <${Icon} name="dots" size=${18} />
    <//>
  </footer>`;
}

/** @returns {import("./Menu.js").MenuItem[]} */
function accountItems() {
  /** @type {import("./Menu.js").MenuItem[]} */
  const forOperators = boot.admin_url ? [{ label: t("Admin"), icon: "admin", href: boot.admin_url }] : [];
  return [
    { label: t("Memory"), icon: "memory", href: "/memory" },
    { label: t("Your agents"), icon: "spark", onSelect: () => changeUi({ dialog: { kind: "agents" } }) },
    { label: t("Prompts"), icon: "compose", onSelect: () => changeUi({ dialog: { kind: "prompts" } }) },
    { label: t("New folder…"), icon: "plus", onSelect: () => openFolderDialog(null) },
    { label: t("Archived chats"), icon: "archive", onSelect: () => loadListing({ showsArchived: true }) },
    ...(boot.trash_days ? [{ label: t("Trash"), icon: "trash", onSelect: openTrash }] : []),
    { label: t("Settings"), icon: "settings", onSelect: () => changeUi({ dialog: { kind: "settings" } }) },
    { label: t("Keyboard shortcuts"), icon: "keyboard", onSelect: () => changeUi({ dialog: { kind: "shortcuts" } }) },
    ...forOperators,
    null,
    { label: t("Import chats…"), icon: "inbox", onSelect: () => changeUi({ dialog: { kind: "import" } }) },
    { label: t("Export everything"), icon: "export", href: "/api/v1/export" },
    { label: t("Sign out"), icon: "signOut", onSelect: signOut },
  ];
}

export function ThemeSwitch() {
  return html`<div class="theme-switch" role="radiogroup" aria-label=${t("Theme")}>
    ${THEMES.map(
      ([name, icon]) => html`<button type="button" role="radio" aria-checked=${theme.value === name}
        aria-label=${THEME_NAMES[name]} title=${THEME_NAMES[name]} onClick=${() => chooseTheme(name)}>
        <${Icon} name=${icon} size=${18} /></button>`,
    )}
  </div>`;
}
