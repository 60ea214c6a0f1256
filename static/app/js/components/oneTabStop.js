/**
 * Makes the rows of a list one stop of Tab: arrows move between them, and sideways to a row's menu. Home and End lead
 * to the ends of the list, even if the rows there are not drawn or loaded yet.
 */

import { useLayoutEffect } from "preact/hooks";

const ROWS = ".row-link";
const MENUS = ".row-menu";
/** Exists below the last row while there are more rows to load. */
const MORE = ".load-more";
/** Lists of rows, and the placeholders of distant ones. */
const STRETCHES = "ul:has(.row), ul[aria-hidden=true]";

/** @param {{current: HTMLElement|null}} list */
export function useOneTabStop(list) {
  useLayoutEffect(() => {
    const element = /** @type {HTMLElement} */ (list.current);
    /** @type {HTMLElement|null} */
    let stop = null;
    /** The end of the list that is being scrolled into view. @type {"Home"|"End"|null} */
    let scrollTarget = null;
    const rows = () => /** @type {HTMLElement[]} */ ([...element.querySelectorAll(ROWS)]);
    const settle = () => {
      const all = rows();
      if (!stop || !all.includes(stop)) stop = all.find((row) => row.ariaCurrent === "page") ?? all[0] ?? null;
      for (const row of all) row.tabIndex = row === stop ? 0 : -1;
      for (const menu of /** @type {NodeListOf<HTMLElement>} */ (element.querySelectorAll(MENUS))) menu.tabIndex = -1;
    };
    const onFocus = (/** @type {FocusEvent} */ event) => {
      const row = rowOf(event.target);
      if (row) stop = row;
      settle();
    };
    const seek = () => {
      if (!scrollTarget || !element.contains(document.activeElement)) return;
      const at = scrollTarget === "Home" ? 0 : -1;
      rows().at(at)?.focus();
      const end = [...element.querySelectorAll(STRETCHES)].at(at);
      if (end?.ariaHidden === "true") end.scrollIntoView({ block: at ? "end" : "start" });
      else if (!at || !element.querySelector(MORE)) scrollTarget = null;
    };
    const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
      scrollTarget = null;
      const goal = goalOf(event, rows());
      if (!goal) return;
      event.preventDefault();
      goal.focus();
      if (event.key !== "Home" && event.key !== "End") return;
      scrollTarget = event.key;
      seek();
    };
    const observer = new MutationObserver(() => {
      settle();
      seek();
    });
    observer.observe(element, { childList: true, subtree: true });
    const stopSeeking = () => {
      scrollTarget = null;
    };
    element.addEventListener("focusin", onFocus);
    element.addEventListener("pointerdown", stopSeeking);
    element.addEventListener("keydown", onKeyDown);
    settle();
    return () => {
      observer.disconnect();
      element.removeEventListener("focusin", onFocus);
      element.removeEventListener("pointerdown", stopSeeking);
      element.removeEventListener("keydown", onKeyDown);
    };
  }, []);
}

/** @param {EventTarget|null} target @returns {HTMLElement|null} */
const rowOf = (target) => (target instanceof Element ? (target.closest(".row")?.querySelector(ROWS) ?? null) : null);

/**
 * @param {KeyboardEvent} event @param {HTMLElement[]} rows @returns {HTMLElement|null|undefined} where the key leads
 */
function goalOf({ key, target, ctrlKey, metaKey, altKey, shiftKey }, rows) {
  if (!(target instanceof Element) || !target.matches(`${ROWS}, ${MENUS}`) || ctrlKey || metaKey || altKey || shiftKey) return null;
  const row = rowOf(target);
  if (!row) return null;
  const at = rows.indexOf(row);
  const isMenu = target.matches(MENUS);
  const aside = getComputedStyle(row).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
  if (key === aside) return isMenu ? null : /** @type {HTMLElement|null} */ (row.closest(".row")?.querySelector(MENUS));
  if (isMenu) return key === "ArrowLeft" || key === "ArrowRight" ? row : null;
  return { ArrowDown: rows[at + 1], ArrowUp: rows[at - 1], Home: rows[0], End: rows.at(-1) }[key];
}
