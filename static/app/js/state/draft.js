/** What stands in the composer: text, uploads on their way, and what was not sent. */

import { computed, signal } from "@preact/signals";
import { t } from "../i18n.js";
import { readDraft, readDraftFiles, readUnsent, writeDraft, writeDraftFiles, writeUnsent } from "../storage.js";
import { currentId } from "./store.js";

/**
 * @typedef {{key: string, chat: string|null, name: string, preview: string, share: number, error: string,
 *   attached: import("./types.js").Attached|null, abort: AbortController}} Upload
 * @typedef {{clientId: string, text: string, attached: import("./types.js").Attached[], parent?: string}} Outgoing
 * @typedef {Outgoing & {reason?: string}} Unsent `reason`: why it came back; without one it is on its way
 */

export const draftText = signal("");
/** What the last command answered; shown until it is closed or a message is sent. */
export const answerOfCommand = signal(/** @type {import("../commands/slash.js").CommandAnswer|null} */ (null));
/** Which of the offered commands Tab takes; -1 while none are offered, until something else is written. */
export const chosenCommand = signal(0);
/** Which of the own messages is being written anew. */
export const editedId = signal(/** @type {string|null} */ (null));
/** By message, what was typed in its place; also while another chat is open. @type {Map<string, string>} */
export const editedTexts = new Map();
/** The answer after which the next message goes, in a branch of its own. */
export const branchAfter = signal(/** @type {string|null} */ (null));
/** A long text that was pasted; it may go as a file instead. */
export const longPaste = signal("");
/** What came back into the composer of this chat. */
export const notSent = signal(/** @type {Unsent|null} */ (null));
/** The client ids of what this page is sending. */
const onItsWay = new Set();

/** It was saved, or given up. @param {string} messageId */
export function stopEditing(messageId) {
  editedTexts.delete(messageId);
  if (editedId.value === messageId) editedId.value = null;
}

/** The whole draft, as its writer left it. An emptied one is sent no more. @param {string|null} chat @param {string} text */
export function changeDraft(chat, text) {
  draftText.value = text;
  chosenCommand.value = 0;
  writeDraft(chat, text);
  if (!notSent.value || text || uploads.value.length) return;
  notSent.value = null;
  writeUnsent(chat, null);
}

/** Until it is acknowledged, or came back, its words and files are kept where a reload finds them. @param {string|null} chat @param {Outgoing} outgoing */
export function noteSending(chat, outgoing) {
  onItsWay.add(outgoing.clientId);
  writeUnsent(chat, outgoing);
}

/** It is stored, or goes from another chat. @param {string|null} chat @param {Outgoing} outgoing */
export function noteSent(chat, { clientId }) {
  onItsWay.delete(clientId);
  if (readUnsent(chat)?.clientId === clientId) writeUnsent(chat, null);
}

/** Into the composer, before what was typed since. @param {string|null} chat @param {Unsent} unsent */
export function giveBack(chat, unsent) {
  const isHere = currentId.value === chat;
  const { clientId, text, attached, parent } = unsent;
  onItsWay.delete(clientId);
  const typed = isHere ? draftText.value : readDraft(chat);
  const whole = typed && typed !== text ? `${text}\n\n${typed}` : text;
  writeDraft(chat, whole);
  writeUnsent(chat, unsent);
  const known = new Set(allUploads.value.flatMap((upload) => (upload.chat === chat && upload.attached ? upload.attached.id : [])));
  addUploads(...attached.filter((one) => !known.has(one.id)).map((one) => uploaded(one, chat)));
  if (!isHere) return;
  draftText.value = whole;
  branchAfter.value = parent ?? null;
  notSent.value = unsent;
}

/** Shows what this browser kept of a chat that is opened. @param {string|null} chat */
export function restoreDraft(chat) {
  draftText.value = readDraft(chat);
  chosenCommand.value = 0;
  restoreUploads(chat);
  const unsent = readUnsent(chat);
  const isBack = unsent !== null && !onItsWay.has(unsent.clientId);
  notSent.value = isBack ? unsent : null;
  branchAfter.value = (isBack && unsent.parent) || null;
  // The page that sent it was closed before an answer came.
  if (isBack && !unsent.reason) giveBack(chat, { ...unsent, reason: t("The server did not answer. Check your connection and try again.") });
}

/** What somebody has begun to write stays: the text comes below it. @param {string|null} chat @param {string} text */
export function addToDraft(chat, text) {
  const begun = (chat === currentId.value ? draftText.value : readDraft(chat)).trimEnd();
  const whole = begun ? `${begun}\n\n${text}` : text;
  if (chat === currentId.value) draftText.value = whole;
  writeDraft(chat, whole);
}

const allUploads = signal(/** @type {Upload[]} */ ([]));
export const uploads = computed(() => allUploads.value.filter((upload) => upload.chat === currentId.value));

/** The conversation of a new chat is being made; until then a second Send does nothing. */
export const isCreating = signal(false);

/** @param {Upload[]} added */
export function addUploads(...added) {
  setUploads([...allUploads.value, ...added]);
}

/** What is uploaded stays with its draft, also after a reload. @param {Upload[]} all */
function setUploads(all) {
  const chats = new Set([...allUploads.value, ...all].map(({ chat }) => chat));
  allUploads.value = all;
  for (const id of chats) writeDraftFiles(id, all.flatMap(({ chat, attached }) => (chat === id && attached ? [attached] : [])));
}

/** What this browser kept with the draft of a chat. @param {string|null} chat */
function restoreUploads(chat) {
  if (allUploads.value.some((upload) => upload.chat === chat)) return;
  const files = readDraftFiles(chat);
  if (files.length) addUploads(...files.map((file) => uploaded(file, chat)));
}

/** A file that the server has already. @param {import("./types.js").Attached} attached @param {string|null} chat @returns {Upload} */
export const uploaded = (attached, chat) => ({
  key: attached.id,
  chat,
  name: attached.name,
  preview: attached.isImage ? attached.url : "",
  share: 1,
  error: "",
  attached,
  abort: new AbortController(),
});

/** @param {string} key @param {Partial<Upload>} news */
export function changeUpload(key, news) {
  setUploads(allUploads.value.map((upload) => (upload.key === key ? { ...upload, ...news } : upload)));
}

/** @param {string} key */
export function dropUpload(key) {
  const upload = allUploads.value.find((one) => one.key === key);
  upload?.abort.abort();
  if (upload?.preview) URL.revokeObjectURL(upload.preview);
  setUploads(allUploads.value.filter((one) => one.key !== key));
}

/** What stood in the composer of this chat was taken over. @param {string|null} chat */
export function clearUploads(chat) {
  for (const upload of allUploads.value) if (upload.chat === chat) dropUpload(upload.key);
}
