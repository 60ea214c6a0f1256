/** Renders one setting with a few values, and a note about its purpose. */

import { html } from "../html.js";

/**
 * @param {{title: string, note?: string, name: string, value: string, options: [string, string][],
 *   onChoose: (value: string) => void}} props
 */
export function Choice({ title, note, name, value, options, onChoose }) {
  return html`<section class="setting">
    <div><h3 id=${`setting-${name}`}>${title}</h3>${note && html`<p>${note}</p>`}</div>
    <div class="field"><select name=${name} aria-labelledby=${`setting-${name}`} value=${value} onChange=${(/** @type {any} */ event) => onChoose(event.target.value)}>
      ${options.map(([one, label]) => html`<option value=${one} selected=${one === value}>${label}</option>`)}
    </select></div>
  </section>`;
}
