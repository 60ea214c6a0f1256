/** Components that are fetched when they are first shown, so that the first load stays small. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { html } from "../html.js";

/** @typedef {typeof import("./later.js")} Later */

/** @type {import("@preact/signals").Signal<Later|null>} */
const later = signal(null);

/** Fetch the components before one is needed. */
export async function fetchLater() {
  later.value ??= await import("./later.js");
}

/** @param {keyof Later} name @param {() => any} waiting what is shown meanwhile */
export const lazy = (name, waiting = () => null) =>
  function Lazy(/** @type {any} */ props) {
    useEffect(() => void fetchLater(), []);
    return later.value ? html`<${later.value[name]} ...${props} />` : waiting();
  };
