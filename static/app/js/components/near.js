/** Draws elements far from the window only when they come near. */

import { useSignal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";

/** Code up to this size is drawn at once, wherever it is. */
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

/**
 * Return whether the element has come near the window. Once true, it stays true.
 * @param {{current: HTMLElement|null}} element @param {boolean} isLazy
 */
export function useNear(element, isLazy) {
  const isNear = useSignal(!isLazy);
  useLayoutEffect(() => {
    const target = element.current;
    if (!target || isNear.value) return undefined;
    // A sheet for printing is drawn as a whole.
    if (target.closest(".print-sheet")) return void (isNear.value = true);
    // The margin extends the list, which is what scrolls. Not every browser supports it.
    observer ??= new IntersectionObserver(tell, /** @type {IntersectionObserverInit} */ ({ scrollMargin: MARGIN }));
    waiting.set(target, () => (isNear.value = true));
    observer.observe(target);
    return () => observer?.unobserve(target);
  }, []);
  return isNear.value;
}
