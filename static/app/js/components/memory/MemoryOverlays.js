/** What opens over the memory page: the question before something is forgotten, and short notices. */

import { html } from "../../html.js";
import { ui } from "../../state/store.js";
import { ForgetDialog } from "../ForgetDialog.js";
import { Toasts } from "../Toasts.js";

export function MemoryOverlays() {
  const { dialog } = ui.value;
  return html`${dialog?.kind === "forget" && html`<${ForgetDialog} ...${dialog} />`}<${Toasts} />`;
}
