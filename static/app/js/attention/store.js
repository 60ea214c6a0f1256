/** Which conversations wait for the user, and whether this browser may notify about them. */

import { computed, signal } from "@preact/signals";
import { errorText } from "../commands/conversations.js";
import { changeSettings, personal } from "../settings/store.js";
import { waits } from "../state/listing.js";
import { conversations, showToast } from "../state/store.js";

export const isInView = signal(!document.hidden);

export const waiting = computed(() => Object.values(conversations.value).filter(waits));
/** Whether more conversations wait than were loaded. */
export const hasMoreWaiting = signal(false);
/** The count for the page title; empty if nothing waits. */
export const waitingCount = computed(() => (waiting.value.length ? `${waiting.value.length}${hasMoreWaiting.value ? "+" : ""}` : ""));
export const waitingFolders = computed(() => new Set(waiting.value.map(({ folder }) => folder)));

const permission = signal("Notification" in globalThis ? Notification.permission : "denied");
const isRefused = computed(() => !personal.value.notifications);
/** Whether the user was away while an answer was written, so that a notification would have helped. */
export const wasAway = signal(false);

export const mayNotify = computed(() => permission.value === "granted" && !isRefused.value);
/** Whether to offer notifications: one would help, and the user has not decided yet. */
export const mayOffer = computed(
  () => permission.value === "default" && !isRefused.value && (wasAway.value || waiting.value.some((one) => one.waiting_calls)),
);

/** Ask for the browser's permission, after the user has agreed in this page. */
export async function allowNotifications() {
  if ("Notification" in globalThis) permission.value = await Notification.requestPermission();
}

/** Refuse notifications on all devices, until the user switches them on in the settings. */
export function refuseNotifications() {
  changeSettings({ notifications: false }).catch((error) => showToast(errorText(error), "bad"));
}
