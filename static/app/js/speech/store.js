/** Whether the browser can recognise speech, and whether it is listening. */

import { signal } from "@preact/signals";

/**
 * @typedef {{lang: string, continuous: boolean, interimResults: boolean, start: () => void, stop: () => void,
 *   abort: () => void, onresult: (event: {results: ArrayLike<ArrayLike<{transcript: string}>>}) => void,
 *   onerror: (event: {error: string}) => void, onend: () => void}} Recogniser
 */

const { SpeechRecognition, webkitSpeechRecognition } = /** @type {Record<string, any>} */ (globalThis);

/** Undefined if the browser has no speech recognition. @type {(new () => Recogniser)|undefined} */
export const Recognition = SpeechRecognition ?? webkitSpeechRecognition;

export const isListening = signal(false);
