/** The button that loads the next page of a list or text, only once until the page has arrived. */

import { useSignal } from "@preact/signals";
import { html } from "../html.js";

/**
 * Render the button. It is not disabled while loading, because that would take the focus away.
 * @param {{label: string, className: string, load: () => Promise<unknown>}} props
 */
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
