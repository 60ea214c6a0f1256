/** The composer's content: text, uploads, and messages that were not sent. */

import { computed, signal } from "@preact/signals";
import { t } from "../i18n.js";
import { readDraft, readDraftFiles, readUnsent, writeDraft, writeDraftFiles, writeUnsent } from "../storage.js";
import { currentId } from "./store.js";

/**
 * @typedef {{key: string, chat: string|null, name: string, preview: string, share: number, error: string,
 *   attached: import("./types.js").Attached|null, abort: AbortController}} Upload
 * @typedef {{clientId: string, text: string, attached: import("./types.js").Attached[], parent?: string}} Outgoing
 * @typedef {Outgoing & {reason?: string}} Unsent `reason`: why it came back; missing while it is being sent
 */

export const draftText = signal("");
/** The result of the last command, shown until it is closed or a message is sent. */
export const answerOfCommand = signal(/** @type {import("../commands/slash.js").CommandAnswer|null} */ (null));
/** Index of the offered command that Tab takes; -1 hides the offers until the text changes. */
export const chosenCommand = signal(0);
/** The user's message that is being edited. */
export const editedId = signal(/** @type {string|null} */ (null));
/** Edited texts by message id, kept while another chat is open. @type {Map<string, string>} */
export const editedTexts = new Map();
/** The answer after which the next message begins a new branch. */
export const branchAfter = signal(/** @type {string|null} */ (null));
/** A long pasted text, which may be attached as a file instead. */
export const longPaste = signal("");
/** The message that came back into the composer of this chat. */
export const notSent = signal(/** @type {Unsent|null} */ (null));
/** Client ids of messages that this page is sending. */
const onItsWay = new Set();

/** End editing a message, after it was saved or given up. @param {string} messageId */
export function stopEditing(messageId) {
  editedTexts.delete(messageId);
  if (editedId.value === messageId) editedId.value = null;
}

/**
 * Replace the whole draft. An emptied draft discards the message that came back.
 * @param {string|null} chat @param {string} text
 */
export function changeDraft(chat, text) {
  draftText.value = text;
  chosenCommand.value = 0;
  writeDraft(chat, text);
  if (!notSent.value || text || uploads.value.length) return;
  notSent.value = null;
  writeUnsent(chat, null);
}

/**
 * Store a message while it is being sent, so that a reload does not lose it.
 * @param {string|null} chat @param {Outgoing} outgoing
 */
export function storeUnsent(chat, outgoing) {
  onItsWay.add(outgoing.clientId);
  writeUnsent(chat, outgoing);
}

/**
 * Remove the copy of a message that has arrived, or is now sent from another chat.
 * @param {string|null} chat @param {Outgoing} outgoing
 */
export function noteSent(chat, { clientId }) {
  onItsWay.delete(clientId);
  if (readUnsent(chat)?.clientId === clientId) writeUnsent(chat, null);
}

/** Return a message to the composer, before the text typed since. @param {string|null} chat @param {Unsent} unsent */
export function returnToDraft(chat, unsent) {
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

/** Show the stored draft of a chat that is opened. @param {string|null} chat */
export function restoreDraft(chat) {
  draftText.value = readDraft(chat);
  chosenCommand.value = 0;
  restoreUploads(chat);
  const unsent = readUnsent(chat);
  const isBack = unsent !== null && !onItsWay.has(unsent.clientId);
  notSent.value = isBack ? unsent : null;
  branchAfter.value = (isBack && unsent.parent) || null;
  // The page that sent the message was closed before the response arrived.
  if (isBack && !unsent.reason) returnToDraft(chat, { ...unsent, reason: t("The server did not answer. Check your connection and try again.") });
}

/** Append a text to the draft. @param {string|null} chat @param {string} text */
export function addToDraft(chat, text) {
  const begun = (chat === currentId.value ? draftText.value : readDraft(chat)).trimEnd();
  const whole = begun ? `${begun}\n\n${text}` : text;
  if (chat === currentId.value) draftText.value = whole;
  writeDraft(chat, whole);
}

const allUploads = signal(/** @type {Upload[]} */ ([]));
export const uploads = computed(() => allUploads.value.filter((upload) => upload.chat === currentId.value));

/** Whether the conversation of a new chat is being created; a second Send waits for it. */
export const isCreating = signal(false);

/** @param {Upload[]} added */
export function addUploads(...added) {
  setUploads([...allUploads.value, ...added]);
}

/**
 * Set the uploads, and store the finished ones with their drafts, so that a reload keeps them.
 * @param {Upload[]} all
 */
function setUploads(all) {
  const chats = new Set([...allUploads.value, ...all].map(({ chat }) => chat));
  allUploads.value = all;
  for (const id of chats) writeDraftFiles(id, all.flatMap(({ chat, attached }) => (chat === id && attached ? [attached] : [])));
}

/** Restore the stored files of a chat's draft. @param {string|null} chat */
function restoreUploads(chat) {
  if (allUploads.value.some((upload) => upload.chat === chat)) return;
  const files = readDraftFiles(chat);
  if (files.length) addUploads(...files.map((file) => uploaded(file, chat)));
}

/**
 * Return the upload of a file that the server already has.
 * @param {import("./types.js").Attached} attached @param {string|null} chat @returns {Upload}
 */
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

/** Remove the uploads from a chat's composer, because a message has taken them over. @param {string|null} chat */
export function clearUploads(chat) {
  for (const upload of allUploads.value) if (upload.chat === chat) dropUpload(upload.key);
}
