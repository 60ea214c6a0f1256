/** A result that was too large for the context: how much the model saw of it, and all of it, page by page. */

import { useSignal } from "@preact/signals";
import { errorText } from "../commands/conversations.js";
import { readOffloaded } from "../commands/tools.js";
import { exact } from "../format.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { currentId } from "../state/store.js";
import { MoreButton } from "./MoreButton.js";

/** @param {{offloadRef: string}} props */
export function OffloadedResult({ offloadRef }) {
  const page = useSignal(/** @type {import("../commands/tools.js").OffloadPage|null} */ (null));
  const text = useSignal("");
  const problem = useSignal("");
  const read = async () => {
    problem.value = "";
    try {
      const next = await readOffloaded(currentId.value ?? "", offloadRef, page.value?.next_offset ?? 0);
      text.value += next.text;
      page.value = next;
    } catch (error) {
      problem.value = errorText(error);
    }
  };
  const shown = page.value;
  if (!shown)
    return html`<p class="fold-label">${t("The model saw the beginning and the end; all of it is kept.")} <${MoreButton} className="link" label=${t("Open")} load=${read} /></p>
      ${problem.value && html`<p class="form-error" role="alert">${problem.value}</p>`}`;
  if (shown.total_chars === null) return html`<img src=${shown.content_url} alt=${t("Image from a tool")} loading="lazy" />`;
  return html`<p class="fold-label" role="status">${t("Showing {n} of {all} characters", { n: exact(text.value.length), all: exact(shown.total_chars) })}</p>
    <pre class="is-tall" tabindex="0">${text.value}</pre>
    <p class="fold-label">${shown.next_offset !== null && html`<${MoreButton} className="link" label=${t("More")} load=${read} /> · `}<a class="link" href=${shown.content_url} download>${t("Download")}</a></p>
    ${problem.value && html`<p class="form-error" role="alert">${problem.value}</p>`}`;
}
