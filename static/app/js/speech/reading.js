/** Reads an answer aloud by the browser's own voices, where it has any. */

import { effect, signal } from "@preact/signals";
import { plainText } from "../format.js";
import { language } from "../i18n.js";
import { currentId } from "../state/store.js";

export const canRead = typeof globalThis.speechSynthesis === "object";

/** The message that is being read. */
export const readId = signal(/** @type {string|null} */ (null));

const PIECE = /[^.!?。！？\n]{1,200}(?:[.!?。！？\n]+|(?=\s)|$)|[^.!?。！？\n]{1,200}/gu;
/** @type {[RegExp, string][]} */
const SCRIPTS = [
  [/[\p{Script=Hiragana}\p{Script=Katakana}]/u, "ja"],
  [/\p{Script=Hangul}/u, "ko"],
  [/\p{Script=Han}/u, "zh"],
  [/\p{Script=Cyrillic}/u, "ru"],
  [/\p{Script=Arabic}/u, "ar"],
  [/\p{Script=Greek}/u, "el"],
  [/\p{Script=Hebrew}/u, "he"],
  [/\p{Script=Devanagari}/u, "hi"],
];

/** Kept while they are spoken: some browsers forget whom to tell of the end. @type {SpeechSynthesisUtterance[]} */
let current = [];

/** Sentence by sentence, for some voices fall silent in long texts. @param {string} markdown @returns {string[]} */
export const piecesOf = (markdown) => (plainText(markdown).match(PIECE) ?? []).map((piece) => piece.trim()).filter(Boolean);

/** By the letters; Latin ones are taken for the language of the page, which may itself use others. @param {string} text */
export function voiceLanguage(text) {
  const found = SCRIPTS.find(([script]) => script.test(text));
  return found ? found[1] : language.startsWith("zh") ? "en" : language;
}

/** @param {{id: string, text: string}} message */
export function readAloud({ id, text }) {
  stopReading();
  const pieces = piecesOf(text).map((piece) => {
    const spoken = new SpeechSynthesisUtterance(piece);
    spoken.lang = voiceLanguage(piece);
    return spoken;
  });
  // Another reading may have begun by the time this one is told to be over.
  const end = () => current === pieces && stopReading();
  const last = pieces.at(-1);
  if (!last) return;
  last.onend = end;
  current = pieces;
  readId.value = id;
  for (const spoken of pieces) {
    spoken.onerror = end;
    speechSynthesis.speak(spoken);
  }
}

export function stopReading() {
  current = [];
  readId.value = null;
  speechSynthesis.cancel();
}

// Who leaves the chat is done listening; a voice would go on after a reload, too.
if (canRead) {
  effect(() => {
    currentId.value;
    if (readId.peek() !== null) stopReading();
  });
  addEventListener("pagehide", stopReading);
}
