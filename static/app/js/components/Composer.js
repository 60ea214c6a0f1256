/** The form in which a message is written. */

import { useEffect, useRef } from "preact/hooks";
import { NotifyOffer } from "../attention/NotifyOffer.js";
import { mayOffer } from "../attention/store.js";
import { boot } from "../boot.js";
import { changeConversation } from "../commands/conversations.js";
import { canSend, sendDraft, stopRun } from "../commands/messages.js";
import { commandIn, offered } from "../commands/slash.js";
import { ACCEPTED, addFiles } from "../commands/uploads.js";
import { describeEnd, exact, expiresSoon } from "../format.js";
import { html } from "../html.js";
import { plural, t } from "../i18n.js";
import { personal } from "../settings/store.js";
import { DictateButton } from "../speech/DictateButton.js";
import { branchAfter, changeDraft, chosenCommand, draftText, editedId, longPaste, notSent, uploads } from "../state/draft.js";
import { isAtNewest } from "../state/pages.js";
import { connection, currentAgent, currentConversation, currentId, currentModel, currentThread, state } from "../state/store.js";
import { writeDraft } from "../storage.js";
import { ContextRing } from "./ContextRing.js";
import { Icon } from "./icons.js";
import { ModeChip } from "./ModeChip.js";
import { attributesOfMenu, CommandAnswer, CommandMenu } from "./SlashCommands.js";
import { Refusals, UploadThumb } from "./UploadThumb.js";

/** On a touch screen Enter breaks the line, because its keyboard has no Shift+Enter. */
const isTouch = matchMedia("(hover: none) and (pointer: coarse)");

export function Composer() {
  const area = useRef(/** @type {HTMLTextAreaElement|null} */ (null));
  const id = currentId.value;
  useEffect(() => grow(area.current), [draftText.value]);
  useEffect(() => {
    if (!isTouch.matches) area.current?.focus();
  }, [id]);
  const write = (/** @type {string} */ text) => changeDraft(id, text);
  const onInput = (/** @type {any} */ event) => write(event.target.value);
  const complete = (/** @type {string} */ text) => {
    write(text);
    area.current?.focus();
  };
  return html`<div class="composer-frame column">
    <${Banner} />
    <${PasteOffer} />
    <${CommandAnswer} />
    <${CommandMenu} complete=${complete} />
    <form class="composer" onSubmit=${submit} aria-label=${t("Write a message")}>
      ${uploads.value.length > 0 && html`<ul class="uploads">${uploads.value.map((upload) => html`<${UploadThumb} key=${upload.key} upload=${upload} />`)}</ul>`}
      <${Refusals} />
      <textarea ref=${area} id="composer" dir="auto" rows="1" placeholder=${currentModel.value ? t("Message {name}", { name: currentModel.value.name }) : t("Message")} aria-label=${t("Message")} aria-autocomplete="list" ...${attributesOfMenu()}
        value=${draftText.value} onInput=${onInput} onKeyDown=${(/** @type {KeyboardEvent} */ event) => chooseCommand(event, complete) || onKeyDown(event)} onPaste=${onPaste} enterkeyhint=${isTouch.matches || personal.value.send_key !== "enter" ? "enter" : "send"}></textarea>
      <div class="composer-bar">
        <${AttachButton} />
        <${ModeChip} />
        <span class="spacer"></span>
        <${ContextRing} />
        <${DictateButton} />
        <${SendButton} />
      </div>
    </form>
    <p class="fine-print">${finePrint()}</p>
    ${boot.operators_read && !currentConversation.value?.temporary && html`<p class="told-print">${t("Operators of this service can read chats; every access is recorded.")}</p>`}
  </div>`;
}

/** Return the note below the composer, which depends on the deployment and the chat. */
function finePrint() {
  const conversation = currentConversation.value;
  if (conversation ? conversation.temporary : state.value.isTemporary) return temporaryPrint();
  if (!boot.retention_days || conversation?.pinned) return t("Answers can be wrong. Nothing you say here is lost.");
  return boot.trash_days
    ? plural(boot.retention_days, "Answers can be wrong. A chat moves to the trash {n} day after its last message, unless you pin it.", "Answers can be wrong. A chat moves to the trash {n} days after its last message, unless you pin it.")
    : plural(boot.retention_days, "Answers can be wrong. A chat is deleted {n} day after its last message, unless you pin it.", "Answers can be wrong. A chat is deleted {n} days after its last message, unless you pin it.");
}

const temporaryPrint = () =>
  plural(boot.temporary_days, "Answers can be wrong. A temporary chat is in no list, and is deleted {n} day after its last message.", "Answers can be wrong. A temporary chat is in no list, and is deleted {n} days after its last message.");

/** @param {Event} event */
function submit(event) {
  event.preventDefault();
  sendDraft();
}

/** @param {KeyboardEvent} event */
function onKeyDown(event) {
  if (event.key === "ArrowUp" && !draftText.value && editLast()) return event.preventDefault();
  const isEnter = event.key === "Enter" && !event.shiftKey && !event.altKey;
  const sends = event.ctrlKey || event.metaKey || (personal.value.send_key === "enter" && !isTouch.matches);
  if (!isEnter || !sends || event.isComposing) return;
  event.preventDefault();
  sendDraft();
}

/** @returns {boolean} whether there was a message to edit */
function editLast() {
  const thread = currentThread.value;
  const last = thread?.ids.findLast((id) => thread.messages[id].role === "user");
  if (!thread || !isAtNewest(thread) || thread.run || !last || thread.messages[last].isForgotten || thread.messages[last].isInjected) return false;
  editedId.value = last;
  return true;
}

/**
 * Let arrows choose among the offered commands, and Tab and Enter accept one.
 * @param {KeyboardEvent} event @param {(text: string) => void} complete @returns {boolean} whether the key was handled
 */
function chooseCommand(event, complete) {
  const found = offered();
  if (!found.length || event.isComposing) return false;
  const step = { ArrowDown: 1, ArrowUp: found.length - 1 }[event.key];
  // Enter sends a complete command, even if it is also the beginning of a longer one.
  const takes = (event.key === "Tab" && !event.shiftKey) || (event.key === "Enter" && !event.shiftKey && !commandIn(draftText.value));
  if (step === undefined && !takes) return false;
  event.preventDefault();
  const { name, text } = found[chosenCommand.value % found.length];
  if (step === undefined) complete(text ?? `${name} `);
  else chosenCommand.value = (chosenCommand.value + step) % found.length;
  return true;
}

/** @param {ClipboardEvent} event */
function onPaste(event) {
  const files = [...(event.clipboardData?.files ?? [])].filter((file) => file.type.startsWith("image/"));
  if (!files.length) return notePaste(event.clipboardData?.getData("text/plain") ?? "");
  event.preventDefault();
  addFiles(files);
}

const LONG_PASTE_CHARS = 5000;

/**
 * Offer to attach a long pasted text as a file. Without an answer to the offer, it is sent as text.
 * @param {string} text
 */
function notePaste(text) {
  if (text.length > LONG_PASTE_CHARS) longPaste.value = text.replace(/\r\n?/g, "\n");
}

/** Render the offer while the box contains the pasted text unchanged. */
function PasteOffer() {
  const text = longPaste.value;
  if (!text || !draftText.value.includes(text)) return null;
  const attach = () => {
    draftText.value = draftText.value.replace(text, () => "");
    writeDraft(currentId.value, draftText.value);
    longPaste.value = "";
    addFiles([new File([text], t("Pasted text.txt"), { type: "text/plain" })]);
    document.getElementById("composer")?.focus();
  };
  return html`<p class="banner is-quiet" role="status"><${Icon} name="file" size=${16} />${t("You pasted {n} characters.", { n: exact(text.length) })}
    <button type="button" class="link" onClick=${attach}>${t("Attach as a file")}</button>
    <button type="button" class="link" onClick=${() => (longPaste.value = "")}>${t("Keep as text")}</button></p>`;
}

/** Make the field as tall as its text. CSS sets the limit. @param {HTMLTextAreaElement|null} area */
function grow(area) {
  if (!area) return;
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight}px`;
}

function AttachButton() {
  const field = useRef(/** @type {HTMLInputElement|null} */ (null));
  const onChange = () => {
    addFiles(field.current?.files ?? []);
    if (field.current) field.current.value = "";
  };
  return html`
    <input ref=${field} type="file" accept=${ACCEPTED} multiple hidden onChange=${onChange} />
    <button type="button" class="icon-button" aria-label=${t("Attach images or files")} title=${t("Attach images or files")}
      onClick=${() => field.current?.click()}><${Icon} name="plus" /></button>`;
}

function SendButton() {
  const isAnswering = Boolean(currentThread.value?.run);
  if (isAnswering && !draftText.value.trim()) {
    return html`<button type="button" class="send is-stop" aria-label=${t("Stop")} title=${t("Stop")} onClick=${stopRun}><i></i></button>`;
  }
  const isUploading = uploads.value.some((upload) => !upload.attached && !upload.error);
  return html`<button type="submit" class="send" aria-label=${t("Send")} title=${isAnswering ? t("Send into the answer that is being written") : t("Send")} disabled=${!canSend() || isUploading}>
    <${Icon} name="arrowUp" /></button>`;
}

function Banner() {
  const failed = notSent.value;
  const isLost = connection.value === "lost";
  if (failed || isLost)
    return html`
      ${failed && html`<p class="banner is-bad" role="alert"><${Icon} name="warning" size=${16} /><strong>${t("Not sent")}</strong> ${failed.reason}</p>`}
      ${isLost && html`<p class="banner" role="status"><span class="spinner"></span>${t("Connection lost. Reconnecting…")}</p>`}`;
  if (branchAfter.value !== null)
    return html`<p class="banner is-quiet" role="status"><${Icon} name="branch" size=${16} />${t("Your next message starts a new branch.")}
      <button type="button" class="link" onClick=${() => (branchAfter.value = null)}>${t("Cancel")}</button></p>`;
  const conversation = currentConversation.value;
  if (conversation?.expires_at && expiresSoon(conversation, new Date()))
    return html`<p class="banner" role="status"><${Icon} name="clock" size=${16} />${describeEnd(conversation, boot.trash_days)}
      <button type="button" class="link" onClick=${() => changeConversation(conversation.id, { pinned: true })}>${t("Keep")}</button></p>`;
  if (mayOffer.value) return html`<${NotifyOffer} />`;
  return html`<${MemoryBanner} />`;
}

/** Render a note if nothing is learned in this chat, or if others know what is learned. */
function MemoryBanner() {
  const conversation = currentConversation.value;
  const sharing = conversation ? conversation.shared_memory_of : currentAgent.value?.shares_memory && currentAgent.value.name;
  if (sharing && !conversation?.temporary && conversation?.memory !== "paused")
    return html`<p class="banner is-quiet" role="note"><${Icon} name="memory" size=${16} />${t("Shared memory: everybody who talks to {agent} can see what is remembered here. Your private memory and instructions are not used here.", { agent: sharing })}</p>`;
  if (conversation ? conversation.temporary : state.value.isTemporary)
    return html`<p class="banner is-quiet" role="note"><${Icon} name="clock" size=${16} />${t("Temporary chat: it is not remembered and doesn't use memory.")}</p>`;
  if (conversation?.memory !== "paused") return null;
  const resume = () => changeConversation(conversation.id, { memory: "on" });
  return html`<p class="banner is-quiet" role="note"><${Icon} name="memory" size=${16} />${t("Memory is paused in this chat.")}
    <button type="button" class="link" onClick=${resume}>${t("Resume")}</button></p>`;
}
