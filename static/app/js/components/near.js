/** What is far from the window is not drawn until it comes near. */

import { useSignal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";

/** Drawn at once, wherever it stands. */
export const EAGER_CHARS = 20_000;
const MARGIN = "100%";

/** @type {WeakMap<Element, () => void>} */
const waiting = new WeakMap();
/** @type {IntersectionObserver|null} */
let observer = null;

/** @param {IntersectionObserverEntry[]} entries */
function tell(entries) {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    observer?.unobserve(target);
    waiting.get(target)?.();
  }
}

/** Whether the element came near the window, once and for all. @param {{current: HTMLElement|null}} element @param {boolean} isLazy */
export function useNear(element, isLazy) {
  const isNear = useSignal(!isLazy);
  useLayoutEffect(() => {
    const target = element.current;
    if (!target || isNear.value) return undefined;
    // On paper nothing is far.
    if (target.closest(".print-sheet")) return void (isNear.value = true);
    // The margin is that of the list, which scrolls; not every browser knows it.
    observer ??= new IntersectionObserver(tell, /** @type {IntersectionObserverInit} */ ({ scrollMargin: MARGIN }));
    waiting.set(target, () => (isNear.value = true));
    observer.observe(target);
    return () => observer?.unobserve(target);
  }, []);
  return isNear.value;
}
