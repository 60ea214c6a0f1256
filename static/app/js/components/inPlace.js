/** What stands in the place of the button that opened it, and gives it the focus back. */

import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

/** `opener` is the ref of that button, which is not drawn while it is open. */
export function useInPlace() {
  const isOpen = useSignal(false);
  const opener = useRef(/** @type {HTMLElement|null} */ (null));
  const isDue = useRef(false);
  useLayoutEffect(() => {
    if (isDue.current) opener.current?.focus();
    isDue.current = false;
  }, [isOpen.value]);
  const close = () => {
    // A field that is taken away is blurred by that.
    if (!isOpen.value) return;
    // A click elsewhere has taken the focus away already.
    isDue.current = document.activeElement !== document.body;
    isOpen.value = false;
  };
  return { isOpen, opener, close };
}
