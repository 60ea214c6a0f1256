/** An image or a file that is being attached to the message. */

import { html } from "../html.js";
import { t } from "../i18n.js";
import { dropUpload, uploads } from "../state/draft.js";
import { Icon } from "./icons.js";

/** Render the refused files with the reasons. They are not sent. */
export function Refusals() {
  const refused = uploads.value.filter(({ error }) => error);
  return refused.map(({ key, name, error }) => html`<p key=${key} class="upload-refusal" role="alert"><strong><bdi>${name}</bdi></strong> ${error}</p>`);
}

/** @param {{upload: import("../state/draft.js").Upload}} props */
export function UploadThumb({ upload }) {
  const { key, name, preview, share, error, attached } = upload;
  const isBusy = !attached && !error;
  return html`<li class=${`upload ${error ? "is-bad" : ""}`} title=${error || name}>
    ${preview ? html`<img src=${preview} alt=${name} />` : html`<span class="upload-file"><${Icon} name="file" size=${20} /><span><bdi>${name}</bdi></span></span>`}
    ${isBusy && html`<progress max="1" value=${share} aria-label=${t("Uploading {name}", { name })}></progress>`}
    ${error && html`<span class="upload-error"><${Icon} name="warning" size=${18} /></span>`}
    <button type="button" class="upload-drop" aria-label=${t("Remove {name}", { name })} onClick=${() => dropUpload(key)}><${Icon} name="close" size=${14} /></button>
  </li>`;
}
