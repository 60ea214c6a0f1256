/** A message of the user: a bubble at the right, with its images above. */

import { useSignal } from "@preact/signals";
import { sendHeld, withdrawQueued } from "../commands/queue.js";
import { html, memo } from "../html.js";
import { t } from "../i18n.js";
import { editedId } from "../state/draft.js";
import { changeUi } from "../state/store.js";
import { beginningOf, formatBytes } from "../format.js";
import { CopyButton } from "./CodeBlock.js";
import { Icon } from "./icons.js";
import { MessageEditor } from "./MessageEditor.js";
import { MessageMenu, PinMark } from "./MessageMenu.js";
import { PlainText } from "./PlainText.js";
import { Siblings } from "./Siblings.js";

const LONG_CHARS = 1600;
const LONG_LINES = 18;
/** More characters than a folded message shows. */
const FOLDED_CHARS = 6_000;

/** @typedef {{url: string, name: string, width: number, height: number}} ShownImage */

/** @typedef {{url: string, name: string, sizeBytes: number}} ShownFile */

/**
 * @param {{id: string, text: string, images: ShownImage[], files: ShownFile[], isSending?: boolean,
 *   message?: import("../state/types.js").ViewMessage, isRunning?: boolean, waiting?: "queued"|"held"|null}} props
 *   `message`: the stored message, once there is one; `waiting`: the model has not seen it
 */
function Message({ id, text, images, files, isSending = false, message, isRunning = false, waiting = null }) {
  const isQueued = waiting !== null;
  const isOpen = useSignal(false);
  const isEdited = editedId.value === id;
  const isLong = text.length > LONG_CHARS || text.split("\n").length > LONG_LINES;
  const isFolded = isLong && !isOpen.value;
  return html`<article class=${`message is-user ${isSending ? "is-sending" : ""}`} id=${`m-${id}`} aria-label=${t("You")}>
    <h2 class="visually-hidden">${t("You: {beginning}", { beginning: message?.isForgotten ? t("This message was forgotten.") : beginningOf(text) })}</h2>
    ${images.length > 0 && html`<div class="thumbs">${images.map((image) => html`<${Thumb} image=${image} />`)}</div>`}
    ${files.length > 0 && html`<ul class="files">${files.map(({ url, name, sizeBytes }) => html`<li><a class="file" href=${url} download><${Icon} name="file" size=${18} /><span><bdi>${name}</bdi></span><small>${formatBytes(sizeBytes)}</small></a></li>`)}</ul>`}
    ${isEdited && html`<${MessageEditor} message=${message} isQueued=${isQueued} />`}
    ${text && !isEdited && html`<div dir="auto" class=${`bubble ${isFolded ? "is-folded" : ""}`}><${PlainText} text=${isFolded ? text.slice(0, FOLDED_CHARS) : text} /></div>`}
    ${message?.isInjected && text && html`<p class="outcome">${toldOf(waiting)}${waiting === "held" && html`<span aria-hidden="true"> · </span><button type="button" class="link" onClick=${sendHeld}>${t("Send now")}</button>`}</p>`}
    ${message?.isPinned && !message.isInjected && html`<${PinMark} />`}
    ${message?.isForgotten && !text && html`<p class="outcome">${t("This message was forgotten.")}</p>`}
    ${
      isLong &&
      !isEdited &&
      html`<button type="button" class="link fold" aria-expanded=${!isFolded} onClick=${() => (isOpen.value = !isOpen.value)}>
      ${isFolded ? t("Show more") : t("Show less")}</button>`
    }
    ${message && !isEdited && html`<${Actions} message=${message} isRunning=${isRunning} isQueued=${isQueued} />`}
  </article>`;
}


/** @param {"queued"|"held"|null} waiting */
function toldOf(waiting) {
  if (waiting === "queued") return t("Waits for the next step of the answer");
  return waiting === "held" ? t("On hold, because the answer was stopped") : t("Sent while the answer was being written");
}

/** @param {{message: import("../state/types.js").ViewMessage, isRunning: boolean, isQueued: boolean}} props */
function Actions({ message, isRunning, isQueued }) {
  const { id, text, siblings, isInjected, isForgotten } = message;
  if (!text && siblings.length < 2) return null;
  const edit = () => (editedId.value = id);
  return html`<div class=${`actions ${siblings.length > 1 ? "has-siblings" : ""}`}>
    ${text && html`<${CopyButton} text=${text} label=${t("Copy")} />`}
    ${
      text &&
      (isQueued || !isInjected) &&
      !isForgotten &&
      html`<button type="button" class="icon-button is-small" aria-label=${t("Edit")} title=${t("Edit")} disabled=${isRunning && !isQueued}
      onClick=${edit}><${Icon} name="rename" size=${16} /></button>`
    }
    ${
      isQueued &&
      text &&
      html`<button type="button" class="icon-button is-small" aria-label=${t("Take back")} title=${t("Take back")}
      onClick=${() => withdrawQueued(id, text)}><${Icon} name="trash" size=${16} /></button>`
    }
    ${text && !isQueued && html`<${MessageMenu} message=${message} />`}
    <${Siblings} message=${message} isRunning=${isRunning} />
  </div>`;
}

export const UserMessage = memo(Message);

/** @param {{image: ShownImage}} props */
function Thumb({ image: { url, name, width, height } }) {
  const size = width && height ? { width, height } : {};
  return html`<button type="button" class="thumb" aria-label=${t("Open {name}", { name })} onClick=${() => changeUi({ image: url })}>
    <img src=${url} alt=${name} loading="lazy" decoding="async" ...${size} /></button>`;
}
