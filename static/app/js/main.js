/** Starts the chat page. */

import { effect } from "@preact/signals";
import { render } from "preact";
import { boot } from "./boot.js";
import { loadAttention, startAttention } from "./attention/commands.js";
import { waitingCount } from "./attention/store.js";
import { loadContext } from "./commands/context.js";
import { loadListing, reloadListing } from "./commands/conversations.js";
import { startLive } from "./commands/live.js";
import { loadAgents, loadModels, startNavigation } from "./commands/navigation.js";
import { loadToDivider } from "./commands/pages.js";
import { checkUser, startSession } from "./commands/session.js";
import { reportTimeZone } from "./commands/time_zone.js";
import { App } from "./components/App.js";
import { loadFolders } from "./folders/commands.js";
import { html } from "./html.js";
import { startKeyboard } from "./keyboard.js";
import { startPrintKey } from "./printing/keys.js";
import { changeUi, currentConversation, currentThread, ui } from "./state/store.js";
import { recall, remember, removeDrafts } from "./storage.js";
import { startViewport } from "./viewport.js";

const PHONE = matchMedia("(max-width: 860px)");

// The width when the sidebar was last placed: PHONE.matches changes before its `change` event.
let isNarrow = PHONE.matches;
const placeSidebar = () => {
  isNarrow = PHONE.matches;
  changeUi({ sidebar: !isNarrow && recall("sidebar") !== "closed" });
};
placeSidebar();
// The sidebar must not cover a window that became narrow or was turned.
PHONE.addEventListener("change", placeSidebar);

effect(() => {
  const isOpen = ui.value.sidebar;
  if (!isNarrow) remember("sidebar", isOpen ? null : "closed");
});

effect(() => {
  const title = currentConversation.value?.title;
  const count = waitingCount.value ? `(${waitingCount.value}) ` : "";
  document.title = count + (title ? `${title} · ${boot.product_name}` : boot.product_name);
});

let knownCompactions = 0;
let wasRunning = false;
effect(() => {
  const thread = currentThread.value;
  if (!thread || thread.status !== "ready") return;
  const isRunning = thread.run !== null;
  const count = thread.compactions.length;
  // Wait until this state has settled, because both functions dispatch events.
  if (count > knownCompactions) queueMicrotask(() => loadToDivider(thread.id));
  if (wasRunning && !isRunning) queueMicrotask(() => loadContext(thread.id));
  knownCompactions = count;
  wasRunning = isRunning;
});

// A session that ended without a sign-out leaves its user's drafts behind. The next user must not see them.
removeDrafts({ exceptOwn: true });
startViewport();
startKeyboard();
startSession();
startLive((isAgain) => {
  loadAttention();
  if (!isAgain) return;
  checkUser();
  reloadListing();
  loadFolders();
});
startAttention();
startPrintKey();
loadModels();
loadAgents();
loadListing();
loadFolders();
reportTimeZone();
startNavigation();
render(html`<${App} />`, /** @type {Element} */ (document.getElementById("app")));
