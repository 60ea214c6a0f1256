/** The folders in the sidebar. Each opens to show its conversations. */

import { useSignal } from "@preact/signals";
import { ConversationRow } from "../components/ConversationRow.js";
import { waitingFolders } from "../attention/store.js";
import { Icon } from "../components/icons.js";
import { Menu } from "../components/Menu.js";
import { MoreButton } from "../components/MoreButton.js";
import { exact } from "../format.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { askToDeleteFolder, beginIn, loadFolder, openFolderDialog, toggleFolder } from "./commands.js";
import { takesChats, target } from "./dragging.js";
import { byFolder, chosenFolder, folders, nextCursors, openFolders } from "./store.js";

/** Show this many folders, and beyond them only those that are open, chosen, or contain something unread. */
const SHOWN = 12;

export function FolderGroups() {
  const showsAll = useSignal(false);
  if (!folders.value.length) return null;
  const isShown = (/** @type {import("./store.js").Folder} */ { id }, /** @type {number} */ at) =>
    showsAll.value || at < SHOWN || openFolders.value.has(id) || chosenFolder.value === id || waitingFolders.value.has(id);
  const shown = folders.value.filter(isShown);
  const hasMore = showsAll.value || shown.length < folders.value.length;
  return html`<section class="group">
    <h2 class="group-name">${t("Folders")}</h2>
    <ul>${shown.map((folder) => html`<${Row} key=${folder.id} folder=${folder} />`)}</ul>
    ${
      hasMore &&
      folders.value.length > SHOWN &&
      html`<button type="button" class="link sidebar-note" aria-expanded=${showsAll.value} onClick=${() => (showsAll.value = !showsAll.value)}>
      ${showsAll.value ? t("Show fewer folders") : t("Show all {n} folders", { n: exact(folders.value.length) })}</button>`
    }
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
        ${nextCursors.value[id] && html`<li><${MoreButton} className="link sidebar-note" label=${t("Show more")} load=${() => loadFolder(id)} /></li>`}
      </ul>`
    }
  </li>`;
}
