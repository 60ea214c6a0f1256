/** Elements over the memory page: the dialog for forgetting, and toasts. */

import { html } from "../../html.js";
import { ui } from "../../state/store.js";
import { PageToasts } from "../Dialog.js";
import { ForgetDialog } from "../ForgetDialog.js";

export function MemoryOverlays() {
  const { dialog } = ui.value;
  return html`${dialog?.kind === "forget" && html`<${ForgetDialog} ...${dialog} />`}<${PageToasts} />`;
}
