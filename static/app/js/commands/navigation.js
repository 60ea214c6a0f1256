/** Which conversation is open, and the address that says so. */

import { boot } from "../boot.js";
import { get } from "../api.js";
import { changeUi, currentId, dispatch, state } from "../state/store.js";
import { branchAfter, draftText, editedId, notSent } from "../state/draft.js";
import { readDraft } from "../storage.js";
import { loadContext } from "./context.js";
import { loadThread, loadToDivider, loadToMessage } from "./conversations.js";
import { watch } from "./live.js";

const PHONE = matchMedia("(max-width: 860px)");

/** @param {string|null} id */
const addressOf = (id) => (id === null ? "/" : `/c/${id}`);

/** @param {string|null} id @param {{replaces?: boolean}} [how] */
export function goTo(id, { replaces = false } = {}) {
  if (replaces) history.replaceState(null, "", addressOf(id));
  else if (location.pathname !== addressOf(id)) history.pushState(null, "", addressOf(id));
  if (PHONE.matches) changeUi({ sidebar: false });
  open(id);
}

/** @param {string} id @param {string} messageId */
export function goToMessage(id, messageId) {
  history.pushState(null, "", `${addressOf(id)}#m-${messageId}`);
  if (PHONE.matches) changeUi({ sidebar: false });
  open(id);
}

/** @param {string|null} id */
async function open(id) {
  dispatch({ type: "conversation/opened", id });
  draftText.value = readDraft(id);
  notSent.value = null;
  editedId.value = null;
  branchAfter.value = null;
  if (id === null) return watch(null);
  const isKnown = state.value.threads[id]?.status === "ready";
  if (isKnown) watch(id);
  else if (!(await loadThread(id)) || currentId.value !== id) return;
  watch(id);
  await loadToDivider(id);
  await showLinkedMessage(id);
  loadContext(id);
}

/** `#m-<id>` in the address: a link from the memory page. @param {string} id */
async function showLinkedMessage(id) {
  const messageId = /^#m-(.+)$/.exec(location.hash)?.[1];
  if (!messageId || !(await loadToMessage(id, messageId))) return;
  const element = document.getElementById(`m-${messageId}`);
  element?.scrollIntoView({ block: "center" });
  element?.classList.add("is-found");
}

export function startNavigation() {
  addEventListener("popstate", () => open(/^\/c\/([^/]+)/.exec(location.pathname)?.[1] ?? null));
  open(boot.conversation_id);
}

/** Where it fails, there is the default agent. */
export async function loadAgents() {
  const { items } = await get("/agents").catch(() => ({ items: [] }));
  dispatch({ type: "agents/loaded", agents: items });
}

export async function loadModels() {
  try {
    const { items } = await get("/models");
    const models = items.map((/** @type {any} */ item) => ({ ...item, demo: item.demo ?? item.kind === "demo" }));
    dispatch({ type: "models/loaded", models });
  } catch {
    dispatch({ type: "models/failed" });
  }
}
