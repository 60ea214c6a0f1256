/** A button and the menu that it opens: a popover beside it, or a sheet from below on phones. */

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { html } from "../html.js";
import { Icon } from "./icons.js";

/**
 * @typedef {{label: string, icon?: string, isDanger?: boolean, isChecked?: boolean, note?: string, badge?: string,
 *   href?: string, onSelect?: () => void} | null} MenuItem null is a line between groups
 */

let menuCount = 0;

/**
 * @param {{label: string, items: MenuItem[], children: any, className?: string, align?: "start"|"end", title?: string,
 *   heading?: any, isNamedByText?: boolean}} props `isNamedByText`: the button's text is its accessible name
 */
export function Menu({
  label,
  items,
  children,
  className = "icon-button",
  align = "end",
  title,
  heading,
  isNamedByText,
}) {
  const button = useRef(/** @type {HTMLButtonElement|null} */ (null));
  const popover = useRef(/** @type {HTMLElement|null} */ (null));
  const id = useRef("");
  if (!id.current) id.current = `menu-${(menuCount += 1)}`;
  /** The items are rendered when the menu first opens, because a page has hundreds of menus. */
  const wasOpened = useSignal(false);
  // Bind this while rendering, not in an effect, so that a menu opened at once has its items.
  const onOpening = (/** @type {ToggleEvent} */ event) => {
    if (event.newState === "open") wasOpened.value = true;
  };
  const onToggle = (/** @type {ToggleEvent} */ event) => {
    button.current?.setAttribute("aria-expanded", String(event.newState === "open"));
    if (event.newState === "open") place(button.current, popover.current, align);
  };
  const select = (/** @type {() => void} */ action) => {
    popover.current?.hidePopover();
    button.current?.focus();
    action();
  };
  return html`
    <button type="button" ref=${button} class=${className} aria-haspopup="menu" aria-expanded="false"
      aria-label=${isNamedByText ? undefined : label} title=${title ?? label} popovertarget=${id.current}>${children}</button>
    <div ref=${popover} id=${id.current} class="menu" popover="auto" onBeforeToggle=${onOpening} onToggle=${onToggle}>
      ${wasOpened.value && heading}
      <div role="menu" aria-label=${label} onKeyDown=${moveFocus}>
        ${wasOpened.value && items.map((item) => html`<${Row} item=${item} select=${select} />`)}
      </div>
    </div>`;
}

/** @param {{item: MenuItem, select: (action: () => void) => void}} props */
function Row({ item, select }) {
  if (!item) return html`<hr class="menu-line" role="separator" />`;
  const role = item.isChecked === undefined ? "menuitem" : "menuitemradio";
  const className = `menu-item ${item.isDanger ? "is-danger" : ""}`;
  const inner = html`
    ${item.icon && html`<${Icon} name=${item.icon} size=${18} />`}
    <span class="menu-text">
      <span>${item.label} ${item.badge && html`<span class="badge">${item.badge}</span>`}</span>
      ${item.note && html`<small>${item.note}</small>`}
    </span>
    ${item.isChecked && html`<${Icon} name="check" size=${18} />`}`;
  // A download does not leave the page, so the menu must close by itself.
  if (item.href) return html`<a class=${className} role=${role} href=${item.href} onClick=${() => select(() => {})}>${inner}</a>`;
  const { onSelect = () => {} } = item;
  return html`<button type="button" class=${className} role=${role} aria-checked=${item.isChecked}
    onClick=${() => select(onSelect)}>${inner}</button>`;
}

const GAP = 6;

/** @param {HTMLElement|null} button @param {HTMLElement|null} menu @param {"start"|"end"} align */
function place(button, menu, align) {
  if (!button || !menu) return;
  const anchor = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  const wished = align === "end" ? anchor.right - width : anchor.left;
  const left = Math.max(8, Math.min(wished, innerWidth - width - 8));
  const fitsBelow = anchor.bottom + GAP + height < innerHeight - 8;
  const top = fitsBelow ? anchor.bottom + GAP : Math.max(8, anchor.top - GAP - height);
  menu.style.left = `${left}px`;
  menu.style.top = `${top}px`;
  // The browser reports the opening late: keep the focus of a user who has already chosen an item.
  if (menu.contains(document.activeElement)) return;
  /** @type {HTMLElement|null} */ (menu.querySelector("[role^=menuitem]"))?.focus();
}

/** @param {KeyboardEvent} event */
function moveFocus(event) {
  const menu = /** @type {HTMLElement} */ (event.currentTarget);
  const rows = /** @type {HTMLElement[]} */ ([...menu.querySelectorAll("[role^=menuitem]")]);
  const at = rows.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  rows[(next + rows.length) % rows.length]?.focus();
}
