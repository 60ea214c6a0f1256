/** Which conversation is open, and its address. */

import { boot } from "../boot.js";
import { get } from "../api.js";
import { placeIn } from "../state/address.js";
import { changeUi, currentId, dispatch, state } from "../state/store.js";
import { answerOfCommand, editedId, restoreDraft } from "../state/draft.js";
import { isAtNewest } from "../state/pages.js";
import { loadContext } from "./context.js";
import { watch } from "./live.js";
import { loadThread, loadToDivider } from "./pages.js";
import { showMessage } from "./window.js";

const PHONE = matchMedia("(max-width: 860px)");

/** @param {string|null} id */
const addressOf = (id) => (id === null ? "/" : `/c/${id}`);

/** @param {string|null} id @param {{replaces?: boolean}} [how] */
export function goTo(id, { replaces = false } = {}) {
  if (replaces) history.replaceState(null, "", addressOf(id));
  else if (location.pathname + location.hash !== addressOf(id)) history.pushState(null, "", addressOf(id));
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
  if (id !== currentId.value) answerOfCommand.value = editedId.value = null;
  dispatch({ type: "conversation/opened", id });
  restoreDraft(id);
  if (id === null) return watch(null);
  const { messageId } = placeIn(location);
  const isShown = messageId !== null && (await showMessage(id, messageId));
  if (currentId.value !== id) return;
  if (!isShown && !(await openNewest(id))) return;
  if (currentId.value !== id) return;
  watch(id);
  loadContext(id);
}

/** @param {string} id @returns {Promise<boolean>} whether it is loaded and still wanted */
async function openNewest(id) {
  const thread = state.value.threads[id];
  const isKnown = thread?.status === "ready" && isAtNewest(thread);
  if (isKnown) watch(id);
  else if (!(await loadThread(id)) || currentId.value !== id) return false;
  watch(id);
  await loadToDivider(id);
  return true;
}

/** Open links to conversations in this page, including links in answers. @param {MouseEvent} event */
function followLink(event) {
  const isPlain = event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!link || !isPlain || event.defaultPrevented || link.target || link.origin !== location.origin) return;
  const { id, messageId } = placeIn(link);
  if (id === null) return;
  event.preventDefault();
  if (messageId === null) goTo(id);
  else goToMessage(id, messageId);
}

export function startNavigation() {
  addEventListener("popstate", () => open(placeIn(location).id));
  document.addEventListener("click", followLink);
  open(boot.conversation_id);
}

/** Load the agents. On failure, keep the loaded ones; the default agent always exists. */
export async function loadAgents() {
  const read = await get("/agents").catch(() => null);
  if (read) dispatch({ type: "agents/loaded", agents: read.items });
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
