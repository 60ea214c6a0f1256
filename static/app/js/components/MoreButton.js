/** The button that loads the next page of a list or text: once, however often it is pressed until the page is there. */

import { useSignal } from "@preact/signals";
import { html } from "../html.js";

/** It keeps the focus meanwhile, which a disabled button would lose. @param {{label: string, className: string, load: () => Promise<unknown>}} props */
export function MoreButton({ label, className, load }) {
  const isLoading = useSignal(false);
  const onClick = async () => {
    if (isLoading.value) return;
    isLoading.value = true;
    await load();
    isLoading.value = false;
  };
  return html`<button type="button" class=${className} aria-disabled=${isLoading.value} onClick=${onClick}>${label}</button>`;
}
