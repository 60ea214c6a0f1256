/** The folders in the sidebar: each opens to its conversations. */

import { ConversationRow } from "../components/ConversationRow.js";
import { waitingFolders } from "../attention/store.js";
import { Icon } from "../components/icons.js";
import { Menu } from "../components/Menu.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { askToDeleteFolder, beginIn, loadFolder, openFolderDialog, toggleFolder } from "./commands.js";
import { takesChats, target } from "./dragging.js";
import { byFolder, folders, nextCursors, openFolders } from "./store.js";

export function FolderGroups() {
  if (!folders.value.length) return null;
  return html`<section class="group">
    <h2 class="group-name">${t("Folders")}</h2>
    <ul>${folders.value.map((folder) => html`<${Row} key=${folder.id} folder=${folder} />`)}</ul>
  </section>`;
}

/** @param {{folder: import("./store.js").Folder}} props */
function Row({ folder }) {
  const { id, name } = folder;
  const isOpen = openFolders.value.has(id);
  const items = byFolder.value[id] ?? [];
  const actions = [
    { label: t("New chat here"), icon: "compose", onSelect: () => beginIn(id) },
    { label: t("Edit folder…"), icon: "rename", onSelect: () => openFolderDialog(folder) },
    null,
    { label: t("Delete folder…"), icon: "trash", isDanger: true, onSelect: () => askToDeleteFolder(folder) },
  ];
  return html`<li class=${`folder ${target.value === id ? "is-target" : ""}`} ...${takesChats(id)}>
    <div class="row">
      <button type="button" class="row-link folder-name" aria-expanded=${isOpen} title=${name} onClick=${() => toggleFolder(id)}>
        <${Icon} name=${isOpen ? "down" : "right"} size=${16} /><span class="row-title"><bdi>${name}</bdi></span>
      </button>
      ${!isOpen && waitingFolders.value.has(id) && html`<span class="dot" role="img" aria-label=${t("New answer")}></span>`}
      <${Menu} label=${t("Options for {title}", { title: name })} title=${t("Options")} className="icon-button is-small row-menu"
        items=${actions}><${Icon} name="dots" size=${18} /><//>
    </div>
    ${
      isOpen &&
      html`<ul class="folder-items">
        ${items.map((item) => html`<${ConversationRow} key=${item.id} conversation=${item} />`)}
        ${!items.length && html`<li class="sidebar-note">${t("No chats here yet.")}</li>`}
        ${nextCursors.value[id] && html`<li><button type="button" class="link sidebar-note" onClick=${() => loadFolder(id)}>${t("Show more")}</button></li>`}
      </ul>`
    }
  </li>`;
}
