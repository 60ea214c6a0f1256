/** The files of a folder, which every chat in it has. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, put, remove, uploadFile } from "../api.js";
import { sentenceOf } from "../commands/conversations.js";
import { ACCEPTED } from "../commands/uploads.js";
import { html } from "../html.js";
import { t } from "../i18n.js";

/** @typedef {{id: string, name: string}} StoredFile */

/** @param {{folderId: string}} props */
export function FolderFiles({ folderId }) {
  const path = `/folders/${folderId}/files`;
  const files = useSignal(/** @type {StoredFile[]} */ ([]));
  const share = useSignal(/** @type {number|null} */ (null));
  const problem = useSignal("");
  const attempt = async (/** @type {() => Promise<unknown>} */ work) => {
    try {
      await work();
      files.value = (await get(path)).items;
      problem.value = "";
    } catch (error) {
      problem.value = sentenceOf(error);
    }
  };
  useEffect(() => void attempt(async () => {}), []);
  const add = async (/** @type {any} */ event) => {
    const chosen = /** @type {File[]} */ ([...event.target.files]);
    event.target.value = "";
    for (const file of chosen)
      await attempt(async () => {
        const { id } = await uploadFile(file, (part) => (share.value = part), new AbortController().signal);
        await put(`${path}/${id}`, {});
      });
    share.value = null;
  };
  return html`<fieldset class="folder-files"><legend>${t("Files for every chat in it")}</legend>
    <ul>${files.value.map(
      ({ id, name }) => html`<li key=${id}><span>${name}</span>
        <button type="button" class="button is-small" aria-label=${t("Remove {title}", { title: name })} onClick=${() => attempt(() => remove(`${path}/${id}`))}>${t("Remove")}</button></li>`,
    )}</ul>
    ${problem.value && html`<p class="form-error" role="alert">${problem.value}</p>`}
    ${share.value === null ? html`<label class="field"><span>${t("Add files")}</span><input type="file" multiple accept=${ACCEPTED} onChange=${add} /></label>` : html`<progress max="1" value=${share.value} aria-label=${t("Sending")}></progress>`}
  </fieldset>`;
}
