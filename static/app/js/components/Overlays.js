/** Everything above the page: dialogs, a large image, toasts, and announcements for screen readers. */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { changeConversation } from "../commands/conversations.js";
import { endOfSentences, plainText } from "../format.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { changeUi, currentThread, ui } from "../state/store.js";
import { closeDialog, ConfirmDialog, Dialog, PageToasts, useModal } from "./Dialog.js";
import { Icon } from "./icons.js";
import { lazy } from "./lazy.js";
import { Toasts } from "./Toasts.js";

const AgentsDialog = lazy("AgentsDialog");
const FolderDialog = lazy("FolderDialog");
const ForgetDialog = lazy("ForgetDialog");
const ImportDialog = lazy("ImportDialog");
const MoveDialog = lazy("MoveDialog");
const Palette = lazy("Palette");
const PromptsDialog = lazy("PromptsDialog");
const SearchDialog = lazy("SearchDialog");
const SettingsDialog = lazy("SettingsDialog");
const ShareDialog = lazy("ShareDialog");
const ShortcutsDialog = lazy("ShortcutsDialog");
const TrashDialog = lazy("TrashDialog");

export function Overlays() {
  return html`<${OpenDialog} /><${Lightbox} /><${PageToasts} /><${Announcer} />`;
}

function OpenDialog() {
  const { dialog } = ui.value;
  switch (dialog?.kind) {
    case "settings":
      return html`<${SettingsDialog} />`;
    case "shortcuts":
      return html`<${ShortcutsDialog} />`;
    case "import":
      return html`<${ImportDialog} />`;
    case "prompts":
      return html`<${PromptsDialog} />`;
    case "search":
      return html`<${SearchDialog} q=${dialog.q} />`;
    case "palette":
      return html`<${Palette} />`;
    case "confirm":
      return html`<${ConfirmDialog} ...${dialog} />`;
    case "agents":
      return html`<${AgentsDialog} />`;
    case "forget":
      return html`<${ForgetDialog} ...${dialog} />`;
    case "share":
      return html`<${ShareDialog} conversation=${dialog.conversation} />`;
    case "folder":
      return html`<${FolderDialog} folder=${dialog.folder} moves=${dialog.moves} />`;
    case "move":
      return html`<${MoveDialog} conversation=${dialog.conversation} />`;
    case "trash":
      return html`<${TrashDialog} />`;
    case "rename":
      return html`<${RenameDialog} conversation=${dialog.conversation} />`;
    default:
      return null;
  }
}

/** @param {{conversation: import("../state/types.js").Conversation}} props */
function RenameDialog({ conversation }) {
  const save = (/** @type {any} */ event) => {
    event.preventDefault();
    const title = String(new FormData(event.target).get("title")).trim();
    closeDialog();
    if (title && title !== conversation.title) changeConversation(conversation.id, { title });
  };
  return html`<${Dialog} title=${t("Rename")} className="is-small">
    <form onSubmit=${save}>
      <label class="field"><span>${t("Title")}</span><input name="title" maxlength="200" defaultValue=${conversation.title} autofocus /></label>
      <div class="dialog-actions">
        <button type="button" class="button" onClick=${closeDialog}>${t("Cancel")}</button>
        <button class="button is-primary">${t("Save")}</button>
      </div>
    </form>
  <//>`;
}

function Lightbox() {
  const { image } = ui.value;
  return image && html`<${OpenImage} key=${image} url=${image} />`;
}

/** @param {{url: string}} props */
function OpenImage({ url }) {
  const dialog = useModal();
  const close = () => changeUi({ image: null });
  return html`<dialog ref=${dialog} class="lightbox" aria-label=${t("Image")} onClose=${close} onClick=${close}>
    <img src=${url} alt=${t("Attached image")} />
    <button type="button" class="icon-button" aria-label=${t("Close")} onClick=${close}><${Icon} name="close" /></button>
    <${Toasts} />
  </dialog>`;
}

/** Announce the growing answer by whole sentences, because nobody could follow single tokens. */
function Announcer() {
  const said = useRef({ thread: "", id: "", chars: 0 });
  const sentence = useSignal("");
  const thread = currentThread.value;
  // A short answer may be over before its first rendering.
  const message = thread?.messages[thread.liveAnswer ?? ""];
  // The end of an answer often has no full stop, so announce it once the run is over.
  const isOver = message !== undefined && message.status !== "streaming";
  useEffect(() => {
    const { id = "", text = "" } = message ?? {};
    // Do not announce an answer that ended before its chat was opened.
    const isRead = isOver && said.current.thread !== thread?.id;
    const chars = said.current.id === id ? said.current.chars : isRead ? text.length : 0;
    const rest = text.slice(chars);
    const news = isOver ? rest : rest.slice(0, endOfSentences(rest));
    said.current = { thread: thread?.id ?? "", id, chars: chars + news.length };
    if (news.trim()) sentence.value = plainText(news);
  }, [thread?.id, message?.text, isOver]);
  return html`<p class="visually-hidden" aria-live="polite">${sentence.value}</p>`;
}
