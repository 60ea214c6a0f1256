/** A panel at the right of the conversation. */

import { useLayoutEffect, useRef } from "preact/hooks";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { changeUi } from "../state/store.js";
import { Icon } from "./icons.js";

/**
 * Render a panel. When it closes, focus inside it returns to the element that opened it.
 * @param {{label: string, title: string, children: any}} props
 */
export function Panel({ label, title, children }) {
  const panel = useRef(/** @type {HTMLElement|null} */ (null));
  useLayoutEffect(() => {
    const element = panel.current;
    const before = /** @type {HTMLElement|null} */ (document.activeElement);
    return () => {
      if (element?.contains(document.activeElement)) before?.focus();
    };
  }, []);
  return html`<aside ref=${panel} class="panel" aria-label=${label}>
    <header class="panel-head">
      <h2>${title}</h2>
      <button type="button" class="icon-button" aria-label=${t("Close")} onClick=${() => changeUi({ panel: null })}><${Icon} name="close" /></button>
    </header>
    ${children}
  </aside>`;
}
