/** Writes dictated text into the message box, with the browser's own speech recognition. */

import { effect } from "@preact/signals";
import { language, locale, t } from "../i18n.js";
import { draftText } from "../state/draft.js";
import { currentId, showToast } from "../state/store.js";
import { writeDraft } from "../storage.js";
import { isListening, Recognition } from "./store.js";

/** The separator between dictated phrases. */
const SPACE = language.startsWith("zh") ? "" : " ";

/** @type {import("./store.js").Recogniser|null} */
let recogniser = null;

export function stopDictation() {
  recogniser?.stop();
}

/** Append dictated text to the draft. Typing, sending or leaving the chat ends dictation. */
export function startDictation() {
  if (!Recognition || recogniser) return;
  const chat = currentId.value;
  const before = draftText.value;
  let written = before;
  const own = new Recognition();
  recogniser = own;
  own.lang = locale;
  own.continuous = true;
  own.interimResults = true;
  own.onresult = ({ results }) => {
    if (recogniser !== own) return;
    const said = Array.from(results, (result) => result[0].transcript.trim()).join(SPACE).trim();
    written = before.trim() && said ? `${before.trimEnd()}${SPACE}${said}` : before + said;
    draftText.value = written;
    writeDraft(chat, written);
  };
  own.onerror = ({ error }) => {
    if (error === "not-allowed" || error === "service-not-allowed") showToast(t("The browser does not let this page listen."), "bad");
    else if (error !== "aborted" && error !== "no-speech") showToast(t("The browser's speech recognition failed."), "bad");
  };
  const unwatch = effect(() => {
    if (draftText.value === written && currentId.value === chat) return;
    queueMicrotask(end);
    own.abort();
  });
  const end = () => {
    if (recogniser !== own) return;
    recogniser = null;
    isListening.value = false;
    unwatch();
  };
  own.onend = end;
  isListening.value = true;
  own.start();
}
