/** Reads an answer aloud with the browser's own voices, if it has any. */

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

/**
 * Keep the utterances while they are spoken: some browsers otherwise never fire their end event.
 * @type {SpeechSynthesisUtterance[]}
 */
let current = [];

/**
 * Split a text into sentences, because some voices fall silent in long texts.
 * @param {string} markdown @returns {string[]}
 */
export const piecesOf = (markdown) => (plainText(markdown).match(PIECE) ?? []).map((piece) => piece.trim()).filter(Boolean);

/**
 * Return the language of the script. Latin text counts as the page's language, or as English on a Chinese page.
 * @param {string} text
 */
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
  // Another reading may have begun before this one's end event.
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

// Stop when the user leaves the chat or the page: a voice would go on even after a reload.
if (canRead) {
  effect(() => {
    currentId.value;
    if (readId.peek() !== null) stopReading();
  });
  addEventListener("pagehide", stopReading);
}
