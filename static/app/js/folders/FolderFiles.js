/** The files of a folder, which are available in each of its chats. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, put, remove, uploadFile } from "../api.js";
import { errorText } from "../commands/conversations.js";
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
  const removed = useSignal(/** @type {StoredFile|null} */ (null));
  const attempt = async (/** @type {() => Promise<unknown>} */ work) => {
    try {
      await work();
      files.value = (await get(path)).items;
      problem.value = "";
      return true;
    } catch (error) {
      problem.value = errorText(error);
      return false;
    }
  };
  useEffect(() => void attempt(async () => {}), []);
  const add = async (/** @type {any} */ event) => {
    const chosen = /** @type {File[]} */ ([...event.target.files]);
    event.target.value = "";
    /** @type {string[]} */
    const refused = [];
    for (const file of chosen)
      await attempt(async () => {
        const { id } = await uploadFile(file, (part) => (share.value = part), new AbortController().signal);
        await put(`${path}/${id}`, {});
      }).then((isDone) => isDone || refused.push(`${file.name}: ${problem.value}`));
    problem.value = refused.join(" ");
    share.value = null;
  };
  const takeOut = (/** @type {StoredFile} */ file) =>
    attempt(async () => {
      await remove(`${path}/${file.id}`);
      removed.value = file;
    });
  const bringBack = ({ id } = /** @type {StoredFile} */ (removed.value)) =>
    attempt(async () => {
      await put(`${path}/${id}`, {});
      removed.value = null;
    });
  return html`<fieldset class="folder-files"><legend>${t("Files for every chat in it")}</legend>
    <ul>${files.value.map(
      (file) => html`<li key=${file.id}><span><bdi>${file.name}</bdi></span>
        <button type="button" class="button is-small" aria-label=${t("Remove {title}", { title: file.name })} onClick=${() => takeOut(file)}>${t("Remove")}</button></li>`,
    )}</ul>
    ${removed.value && html`<p role="status">${t("Removed: {title}", { title: removed.value.name })} <button type="button" class="link" onClick=${() => bringBack()}>${t("Undo")}</button></p>`}
    ${problem.value && html`<p class="form-error" role="alert">${problem.value}</p>`}
    ${share.value === null ? html`<label class="field"><span>${t("Add files")}</span><input type="file" multiple accept=${ACCEPTED} onChange=${add} /></label>` : html`<progress max="1" value=${share.value} aria-label=${t("Sending")}></progress>`}
  </fieldset>`;
}
