/** Sending messages, and stopping, continuing and regenerating answers. */

import { ApiError, post, postAsync } from "../api.js";
import { boot } from "../boot.js";
import { exact } from "../format.js";
import { chosenFolder } from "../folders/store.js";
import { t } from "../i18n.js";
import { answerOfCommand, branchAfter, changeDraft, clearUploads, draftText, isCreating, noteSent, notSent, returnToDraft, storeUnsent, uploads } from "../state/draft.js";
import { isAtNewest } from "../state/pages.js";
import { currentId, currentModel, currentThread, dispatch, showToast, state } from "../state/store.js";
import { writeDraft } from "../storage.js";
import { errorText } from "./conversations.js";
import { goTo } from "./navigation.js";
import { commandIn, runCommand, unknownCommandIn } from "./slash.js";
import { backToNewest } from "./window.js";

/** @typedef {import("../state/types.js").Attached} Attached */
/** @typedef {import("../state/draft.js").Outgoing} Outgoing */

const LOOK_EVERY_MS = 50;

/**
 * Add a client id. A returned message that is sent unchanged keeps its id, so that it is stored only once.
 * @param {Omit<Outgoing, "clientId">} said @returns {Outgoing}
 */
function withClientId(said) {
  const before = notSent.value;
  const isSame = before && before.text === said.text && before.parent === said.parent && fileIdsOf(before.attached) === fileIdsOf(said.attached);
  return { clientId: isSame ? before.clientId : newClientId(), ...said };
}

/** Return a random id, also outside a secure context, where `crypto.randomUUID` is missing. */
export function newClientId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @returns {Outgoing|null} */
function takeDraft() {
  const text = draftText.value;
  const attached = uploads.value.flatMap((upload) => (upload.attached ? [upload.attached] : []));
  const isUploading = uploads.value.some((upload) => !upload.attached && !upload.error);
  if (isUploading) {
    showToast(t("The files are still being uploaded. Send the message once they are here."));
    return null;
  }
  if (isCreating.value || (!text.trim() && !attached.length)) return null;
  if (text.length > boot.limits.max_message_chars) {
    showToast(t("A message may have {n} characters at most.", { n: exact(boot.limits.max_message_chars) }), "bad");
    return null;
  }
  return withClientId({ text, attached, parent: branchAfter.value ?? undefined });
}

/** @param {Attached[]} attached */
const fileIdsOf = (attached) => attached.map((one) => one.id).join();

export async function sendDraft() {
  const hasFiles = uploads.value.some((upload) => !upload.error);
  const command = hasFiles ? undefined : commandIn(draftText.value);
  const unknown = hasFiles || command ? null : unknownCommandIn(draftText.value);
  if (unknown) {
    answerOfCommand.value = {
      title: unknown,
      text: t("This command does not exist; /help lists all commands. To send the text to the model, begin it with a space."),
    };
    return;
  }
  if (command) {
    const text = draftText.value;
    changeDraft(currentId.value, "");
    await runCommand(command, text);
    return;
  }
  if (isBusySending() && !(await waitWithDraft())) return;
  const from = currentId.value;
  // A window further up has no place for a new message, so load the newest page first.
  if (from && currentThread.value && !isAtNewest(currentThread.value) && !(await backToNewest(from))) return;
  if (currentId.value !== from) return;
  const outgoing = takeDraft();
  if (!outgoing) return;
  // Clear the draft at once: text typed from here on is the next message.
  clearUploads(from);
  changeDraft(from, "");
  storeUnsent(from, outgoing);
  answerOfCommand.value = null;
  branchAfter.value = null;
  notSent.value = null;
  const id = from ?? (await createConversation(outgoing));
  if (id !== null) await send(id, outgoing);
}

const isBusySending = () => isCreating.value || Boolean(currentThread.value?.pending.length);

/**
 * Wait until the previous message has its place, so that both stay in order. Return whether the draft is unchanged:
 * text typed meanwhile is not what Enter meant.
 */
async function waitWithDraft() {
  const [from, text] = [currentId.value, draftText.value];
  while (isBusySending()) await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  return draftText.value === text && (currentId.value === from || from === null);
}

/** @param {Outgoing} outgoing */
async function createConversation(outgoing) {
  isCreating.value = true;
  try {
    const conversation = await post("/conversations", {
      model: state.value.chosenModel ?? undefined,
      agent: state.value.chosenAgent ?? undefined,
      folder: chosenFolder.value ?? undefined,
      mode: state.value.chosenMode ?? undefined,
      temporary: state.value.isTemporary || undefined,
    });
    dispatch({ type: "temporary/chosen", isTemporary: false });
    chosenFolder.value = null;
    const isHere = currentId.value === null;
    const typed = isHere ? draftText.value : "";
    if (isHere) writeDraft(null, "");
    noteSent(null, outgoing);
    storeUnsent(conversation.id, outgoing);
    dispatch({ type: "conversation/put", conversation });
    if (isHere) {
      dispatch({ type: "conversation/opened", id: conversation.id });
      dispatch({ type: "thread/loaded", conversation, page: { items: [], next_cursor: null }, compactions: [] });
      goTo(conversation.id);
      changeDraft(conversation.id, typed);
    }
    return /** @type {string} */ (conversation.id);
  } catch (error) {
    returnToComposer(null, outgoing, error);
    return null;
  } finally {
    isCreating.value = false;
  }
}

/** @param {string} id @param {Outgoing} outgoing */
async function send(id, outgoing) {
  const { clientId, text, attached, parent } = outgoing;
  dispatch({ type: "send/started", id, pending: { clientId, text, attached, messageId: null } });
  try {
    const body = { content: text, client_id: clientId, attachments: attached.map((one) => one.id) };
    // Send the message into a running answer, whose model reads it before its next step. A new branch cannot begin
    // meanwhile; the server refuses it.
    const answer = state.value.threads[id]?.run && parent === undefined
      ? await postTwice(`/conversations/${id}/inject`, body)
      : await postTwice(`/conversations/${id}/messages`, { ...body, parent });
    noteSent(id, outgoing);
    dispatch({ type: "send/acked", id, clientId, messageId: answer.message_id });
  } catch (error) {
    dispatch({ type: "send/failed", id, clientId });
    returnToComposer(id, outgoing, error);
  }
}

/** Post, and retry once without a response or on a gateway error. The client id makes this idempotent. */
async function postTwice(/** @type {string} */ path, /** @type {unknown} */ body) {
  try {
    return await postAsync(path, body);
  } catch (error) {
    const isWorthIt = error instanceof ApiError && (error.status === 0 || error.status >= 502);
    if (!isWorthIt) throw error;
    return postAsync(path, body);
  }
}

/**
 * Put an unsent message back into the composer of its chat, with a toast if another chat is open.
 * @param {string|null} chat @param {Outgoing} outgoing @param {unknown} error
 */
function returnToComposer(chat, outgoing, error) {
  const reason = errorText(error);
  returnToDraft(chat, { ...outgoing, reason });
  if (currentId.value !== chat) showToast(t("Not sent: {reason}", { reason }), "bad");
}

export async function stopRun() {
  const run = currentThread.value?.run;
  if (run) await tell(() => post(`/runs/${run.id}/stop`));
}

/** @param {string} runId */
export const continueRun = (runId) => tell(() => postAsync(`/runs/${runId}/continue`));

/** @param {string} messageId @param {string} [model] */
export function regenerate(messageId, model) {
  const path = `/conversations/${currentId.value}/messages/${messageId}/regenerate`;
  return tell(() => postAsync(path, model ? { model } : {}));
}

/** @param {() => Promise<unknown>} ask */
export async function tell(ask) {
  try {
    await ask();
    return true;
  } catch (error) {
    showToast(errorText(error), "bad");
    return false;
  }
}

export const canSend = () =>
  Boolean(currentModel.value) && (draftText.value.trim() !== "" || uploads.value.some((upload) => upload.attached));
