/** What opens over the memory page: the question before something is forgotten, and short notices. */

import { html } from "../../html.js";
import { ui } from "../../state/store.js";
import { PageToasts } from "../Dialog.js";
import { ForgetDialog } from "../ForgetDialog.js";

export function MemoryOverlays() {
  const { dialog } = ui.value;
  return html`${dialog?.kind === "forget" && html`<${ForgetDialog} ...${dialog} />`}<${PageToasts} />`;
}
