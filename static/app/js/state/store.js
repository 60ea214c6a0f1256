/** The only store. Components read it; commands and the socket dispatch to it. */

import { computed, signal } from "@preact/signals";
import { initialState, reduce } from "./reducer.js";

/** @typedef {import("./types.js").State} State */

export const state = signal(initialState());

/** @param {import("./types.js").AppEvent} event */
export function dispatch(event) {
  state.value = reduce(state.value, event);
}

/** @param {Partial<import("./types.js").Ui>} ui */
export const changeUi = (ui) => dispatch({ type: "ui/changed", ui });

export const ui = computed(() => state.value.ui);
export const models = computed(() => state.value.models);
export const connection = computed(() => state.value.connection);
export const listing = computed(() => state.value.listing);
export const conversations = computed(() => state.value.conversations);
export const currentId = computed(() => state.value.currentId);

export const currentConversation = computed(() => {
  const id = currentId.value;
  return id === null ? null : (conversations.value[id] ?? null);
});

export const currentThread = computed(() => {
  const id = currentId.value;
  return id === null ? null : (state.value.threads[id] ?? null);
});

/** The conversation's agent, or the one chosen for a new chat; null until the agents are loaded. */
export const currentAgent = computed(() => {
  const { agents, chosenAgent } = state.value;
  const wanted = currentId.value === null ? chosenAgent : currentConversation.value?.agent;
  return agents.find((agent) => agent.name === wanted) ?? agents.find((agent) => agent.is_default) ?? null;
});

/** How the next message is answered: in the conversation's mode, or else its agent's. */
export const currentMode = computed(() => {
  const chosen = currentId.value === null ? state.value.chosenMode : currentConversation.value?.mode;
  return chosen ?? currentAgent.value?.mode ?? "react";
});

/** The models to choose from, with the current one even if it is not offered. */
export const offeredModels = computed(() =>
  models.value.filter((model) => model.is_offered || model.id === currentModel.value?.id),
);

/** The model the next message goes to: the conversation's, the one chosen for a new chat, the agent's, the default. */
export const currentModel = computed(() => {
  const chosen = currentConversation.value?.model ?? (currentId.value === null ? state.value.chosenModel : null);
  const wanted = chosen ?? currentAgent.value?.model;
  const all = models.value;
  return (
    all.find((model) => model.name === wanted || model.id === wanted) ??
    all.find((model) => model.is_default) ??
    all[0] ??
    null
  );
});

let toastId = 0;
const TOAST_MS = 5000;
const TOAST_WITH_ACTION_MS = 10_000;

/**
 * @param {string} text @param {"plain"|"bad"} [tone] @param {import("./types.js").ToastAction} [action] e.g. an undo
 */
export function showToast(text, tone = "plain", action) {
  toastId += 1;
  const id = toastId;
  dispatch({ type: "toast/shown", toast: { id, text, tone, action } });
  setTimeout(() => hideToast(id), action ? TOAST_WITH_ACTION_MS : TOAST_MS);
}

/** @param {number} id */
export const hideToast = (id) => dispatch({ type: "toast/gone", id });
