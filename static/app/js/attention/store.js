/** What waits for the user, counted, and whether this browser may tell of it. */

import { computed, signal } from "@preact/signals";
import { sentenceOf } from "../commands/conversations.js";
import { changeSettings, personal } from "../settings/store.js";
import { waits } from "../state/listing.js";
import { conversations, showToast } from "../state/store.js";

export const isInView = signal(!document.hidden);

export const waiting = computed(() => Object.values(conversations.value).filter(waits));
/** Whether more waits than was asked for. */
export const hasMoreWaiting = signal(false);
/** For the title; empty where nothing waits. */
export const waitingCount = computed(() => (waiting.value.length ? `${waiting.value.length}${hasMoreWaiting.value ? "+" : ""}` : ""));
export const waitingFolders = computed(() => new Set(waiting.value.map(({ folder }) => folder)));

const permission = signal("Notification" in globalThis ? Notification.permission : "denied");
const isRefused = computed(() => !personal.value.notifications);
/** The user was away while an answer was written: next time a notification would have helped. */
export const wasAway = signal(false);

export const mayNotify = computed(() => permission.value === "granted" && !isRefused.value);
/** Where a notification would help, and nobody has said yes or no. */
export const mayOffer = computed(
  () => permission.value === "default" && !isRefused.value && (wasAway.value || waiting.value.some((one) => one.waiting_calls)),
);

/** Ask the browser, after the user has agreed to it here. */
export async function allowNotifications() {
  if ("Notification" in globalThis) permission.value = await Notification.requestPermission();
}

/** On no device, until it is switched on in the settings. */
export function refuseNotifications() {
  changeSettings({ notifications: false }).catch((error) => showToast(sentenceOf(error), "bad"));
}
