/** The bar below the list during selection: the number of selected conversations, and the actions on them. */

import { useLayoutEffect } from "preact/hooks";
import { Icon } from "../components/icons.js";
import { Menu } from "../components/Menu.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { listing, ui } from "../state/store.js";
import { archiveSelected, AT_ONCE, deleteSelected, exportAddress, openMoveSelected, selectAll } from "./commands.js";
import { endSelection, selection } from "./store.js";

export function SelectionBar() {
  return selection.value && html`<${Bar} ids=${selection.value} />`;
}

/** @param {{ids: Set<string>}} props */
function Bar({ ids }) {
  useLayoutEffect(() => {
    const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
      if (event.defaultPrevented || event.isComposing || ui.value.dialog || document.querySelector(".menu:popover-open")) return;
      const inList = event.target instanceof Element && event.target.closest(".sidebar") && !event.target.closest("input:not([type=checkbox])");
      if (event.key === "Escape") endSelection();
      else if (inList && event.key === "Delete" && ids.size) deleteSelected();
      else if (inList && event.key === "a" && (event.ctrlKey || event.metaKey)) selectAll();
      else return;
      event.preventDefault();
    };
    // Capture these keys before the page's shortcuts, where Escape would stop the answer.
    addEventListener("keydown", onKeyDown, true);
    return () => removeEventListener("keydown", onKeyDown, true);
  }, [ids]);
  const isEmpty = ids.size === 0;
  const { showsArchived } = listing.value;
  const note = ids.size > AT_ONCE ? t("The first {n} of them", { n: AT_ONCE }) : undefined;
  const exports = [
    { label: t("Export as Markdown"), icon: "export", href: exportAddress("markdown"), note },
    { label: t("Export as JSON"), icon: "export", href: exportAddress("json"), note },
  ];
  const button = (/** @type {string} */ icon, /** @type {string} */ label, /** @type {() => unknown} */ act) =>
    html`<button type="button" class="icon-button" aria-label=${label} title=${label} disabled=${isEmpty} onClick=${act}><${Icon} name=${icon} size=${18} /></button>`;
  return html`<div class="selection-bar" role="toolbar" aria-label=${t("Selected chats")}>
    <span role="status">${t("{n} selected", { n: ids.size })}</span>
    ${button("archive", showsArchived ? t("Unarchive") : t("Archive"), () => archiveSelected(!showsArchived))}
    ${button("inbox", t("Move to folder…"), openMoveSelected)}
    ${!isEmpty && html`<${Menu} label=${t("Export")} title=${t("Export")} items=${exports}><${Icon} name="export" size=${18} /><//>`}
    ${button("trash", t("Delete"), deleteSelected)}
    <button type="button" class="icon-button" aria-label=${t("Select all")} title=${t("Select all")} onClick=${selectAll}><${Icon} name="check" size=${18} /></button>
    <button type="button" class="icon-button" aria-label=${t("End selection")} title=${t("End selection")} onClick=${endSelection}><${Icon} name="close" size=${18} /></button>
  </div>`;
}
