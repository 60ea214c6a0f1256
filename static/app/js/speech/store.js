/** Whether the browser can write down what is said, and does so now. */

import { signal } from "@preact/signals";

/**
 * @typedef {{lang: string, continuous: boolean, interimResults: boolean, start: () => void, stop: () => void, abort: () => void,
 *   onresult: (event: {results: ArrayLike<ArrayLike<{transcript: string}>>}) => void, onerror: (event: {error: string}) => void,
 *   onend: () => void}} Recogniser
 */

const { SpeechRecognition, webkitSpeechRecognition } = /** @type {Record<string, any>} */ (globalThis);

/** Undefined where the browser has none. @type {(new () => Recogniser)|undefined} */
export const Recognition = SpeechRecognition ?? webkitSpeechRecognition;

export const isListening = signal(false);
