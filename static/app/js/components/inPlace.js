/** State of an element that replaces the button that opened it, and gives the focus back to the button. */

import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

/** Return the state. `opener` is the ref of the button, which is not rendered while the element is open. */
export function useInPlace() {
  const isOpen = useSignal(false);
  const opener = useRef(/** @type {HTMLElement|null} */ (null));
  const isDue = useRef(false);
  useLayoutEffect(() => {
    if (isDue.current) opener.current?.focus();
    isDue.current = false;
  }, [isOpen.value]);
  const close = () => {
    // Removing a field blurs it, which calls this again.
    if (!isOpen.value) return;
    // A click elsewhere has already taken the focus away.
    isDue.current = document.activeElement !== document.body;
    isOpen.value = false;
  };
  return { isOpen, opener, close };
}
