/** The list of conversations, and the account row below it. */

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { boot } from "../boot.js";
import { SelectionBar } from "../bulk/SelectionBar.js";
import { loadListing, loadMoreListing, reloadListing } from "../commands/conversations.js";
import { goTo } from "../commands/navigation.js";
import { FolderGroups } from "../folders/FolderGroups.js";
import { takesChats, target } from "../folders/dragging.js";
import { chosenFolder, folders } from "../folders/store.js";
import { groupByAge } from "../format.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { openSearch } from "../search/commands.js";
import { changeUi, conversations, currentId, listing, ui } from "../state/store.js";
import { AccountRow } from "./AccountRow.js";
import { ConversationRows } from "./ConversationRows.js";
import { Icon, Mark } from "./icons.js";
import { useOneTabStop } from "./oneTabStop.js";

const SEARCH_DELAY_MS = 200;
const LOOK_AT_CLOCK_MS = 60_000;

/** The groups get other names at midnight, even if nothing else changes. */
const today = signal(new Date().toDateString());
setInterval(() => (today.value = new Date().toDateString()), LOOK_AT_CLOCK_MS);

export function Sidebar() {
  const isOpen = ui.value.sidebar;
  return html`
    <div class="scrim" onClick=${() => changeUi({ sidebar: false })}></div>
    <nav class="sidebar" id="sidebar" aria-label=${t("Conversations")} inert=${!isOpen}>
      <header class="sidebar-head">
        <a class="wordmark" href="/" onClick=${openNew}><${Mark} /><span>${boot.product_name}</span></a>
        <button type="button" class="icon-button" aria-label=${t("Close sidebar")} title=${t("Close sidebar")}
          onClick=${() => changeUi({ sidebar: false })}><${Icon} name="sidebar" /></button>
      </header>
      <div class="sidebar-tools">
        <a class="new-chat" href="/" onClick=${openNew} aria-current=${currentId.value === null ? "page" : undefined}>
          <${Icon} name="compose" />${t("New chat")}
        </a>
        <${Search} />
      </div>
      <${List} />
      <${SelectionBar} />
      <${AccountRow} />
    </nav>`;
}

/** @param {MouseEvent} event */
function openNew(event) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  chosenFolder.value = null;
  goTo(null);
}

function Search() {
  const timer = useRef(/** @type {ReturnType<typeof setTimeout>|undefined} */ (undefined));
  const search = (/** @type {Event} */ event) => {
    const { value } = /** @type {HTMLInputElement} */ (event.target);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => loadListing({ query: value.trim() }), SEARCH_DELAY_MS);
  };
  return html`<label class="search">
    <${Icon} name="search" size=${18} />
    <input type="search" id="search" placeholder=${t("Search")} aria-label=${t("Search conversations")}
      autocomplete="off" onInput=${search} />
  </label>`;
}

function List() {
  const { ids, nextCursor, isLoaded, isLoading, error, query, showsArchived } = listing.value;
  const shown = ids.flatMap((id) => conversations.value[id] ?? []);
  const list = useRef(/** @type {HTMLElement|null} */ (null));
  useOneTabStop(list);
  const isFiltered = query !== "" || showsArchived;
  const groups = query ? [{ name: t("Results"), items: shown }] : groupByAge(shown, new Date(today.value));
  return html`<div class="sidebar-list" ref=${list}>
    ${
      showsArchived &&
      html`<button type="button" class="sidebar-filter" onClick=${() => loadListing()}>
      <${Icon} name="archive" size=${18} />${t("Archived")}<${Icon} name="close" size=${16} /></button>`
    }
    ${
      query &&
      html`<button type="button" class="sidebar-filter" onClick=${() => openSearch(query)}>
      <${Icon} name="search" size=${18} />${t("Search in all messages")}<${Icon} name="right" size=${16} /></button>`
    }
    ${!isFiltered && html`<${FolderGroups} />`}
    ${groups.map(
      ({ name, items }) => html`<section key=${name} class=${`group ${target.value === "" ? "is-target" : ""}`} ...${takesChats(null)}>
        <h2 class="group-name">${name}</h2>
        <${ConversationRows} items=${items} />
      </section>`,
    )}
    ${
      error &&
      html`<p class="sidebar-note">${error}
      <button type="button" class="link" onClick=${reloadListing}>${t("Try again")}</button></p>`
    }
    ${
      isLoaded &&
      !shown.length &&
      !error &&
      (isFiltered || !folders.value.length) &&
      html`<p class="sidebar-note">
      ${query ? t("Nothing found.") : showsArchived ? t("No archived chats.") : t("Your conversations will be listed here.")}</p>`
    }
    ${!isLoaded && isLoading && html`<div class="skeletons" aria-hidden="true"><i></i><i></i><i></i><i></i></div>`}
    ${nextCursor && html`<${LoadMore} key=${nextCursor} isReady=${!isLoading && !error} />`}
  </div>`;
}

/**
 * Load the next page while this mark is in view, even if it came into view while another page was loading.
 * @param {{isReady: boolean}} props
 */
function LoadMore({ isReady }) {
  const mark = useRef(/** @type {HTMLElement|null} */ (null));
  useEffect(() => {
    if (!mark.current || !isReady) return undefined;
    // A busy page delivers several entries at once, of which the last one is current.
    const observer = new IntersectionObserver((entries) => entries.at(-1)?.isIntersecting && loadMoreListing());
    observer.observe(mark.current);
    return () => observer.disconnect();
  }, [isReady]);
  return html`<div ref=${mark} class="load-more" aria-hidden="true"></div>`;
}
