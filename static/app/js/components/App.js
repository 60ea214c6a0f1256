/** The chat page. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { addFiles } from "../commands/uploads.js";
import { goTo } from "../commands/navigation.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { currentId, currentThread, ui } from "../state/store.js";
import { Composer } from "./Composer.js";
import { ContextPanel } from "./ContextPanel.js";
import { EmptyState } from "./EmptyState.js";
import { Header } from "./Header.js";
import { Icon } from "./icons.js";
import { fetchLater, lazy } from "./lazy.js";
import { Overlays } from "./Overlays.js";
import { Sidebar } from "./Sidebar.js";

const Thread = lazy("Thread", () => html`<div class="thread-frame"><${Skeleton} /></div>`);
const RunPanel = lazy("RunPanel");

export function App() {
  useEffect(() => {
    for (const sign of ["keydown", "pointermove", "touchstart"]) addEventListener(sign, fetchLater, { once: true, passive: true });
  }, []);
  return html`
    ${hasComposer() && html`<a class="skip-link" href="#composer" onClick=${skipToComposer}>${t("Skip to the message box")}</a>`}
    <div class="shell" data-sidebar=${ui.value.sidebar ? "open" : "closed"} data-panel=${ui.value.panel ?? "none"}>
      <${Sidebar} />
      <${Stage} />
      <${ContextPanel} />
      ${ui.value.panel === "run" && ui.value.panelRun && html`<${RunPanel} key=${ui.value.panelRun} runId=${ui.value.panelRun} />`}
    </div>
    <${Overlays} />`;
}

/** Return whether there is a composer: not in a chat that is missing or could not be loaded. */
const hasComposer = () => currentId.value === null || !["missing", "failed"].includes(currentThread.value?.status ?? "loading");

/** @param {MouseEvent} event */
function skipToComposer(event) {
  event.preventDefault();
  document.getElementById("composer")?.focus();
}

function Stage() {
  const isDropping = useSignal(false);
  const onDragOver = (/** @type {DragEvent} */ event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    isDropping.value = true;
  };
  const onDrop = (/** @type {DragEvent} */ event) => {
    isDropping.value = false;
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    addFiles(event.dataTransfer.files);
  };
  return html`<main class="stage" onDragOver=${onDragOver} onDragLeave=${() => (isDropping.value = false)} onDrop=${onDrop}>
    <${Header} />
    <${Conversation} />
    ${isDropping.value && html`<div class="drop-here"><${Icon} name="image" size=${28} />${t("Drop images or files here")}</div>`}
  </main>`;
}

function Conversation() {
  const thread = currentThread.value;
  if (currentId.value === null) return html`<${EmptyState} />`;
  if (!thread || thread.status === "loading")
    return html`<div class="thread-frame"><${Skeleton} /></div><${Composer} />`;
  if (thread.status === "ready") return html`<${Thread} key=${thread.id} thread=${thread} /><${Composer} />`;
  return html`<${Problem} thread=${thread} />`;
}

function Skeleton() {
  return html`<div class="column messages skeletons" role="status" aria-label=${t("Loading…")}>
    <i class="is-bubble"></i><i></i><i></i><i class="is-short"></i>
  </div>`;
}

/** @param {{thread: import("../state/types.js").Thread}} props */
function Problem({ thread }) {
  const isMissing = thread.status === "missing";
  return html`<div class="empty"><div class="empty-inner">
    <h1 class="greeting">${isMissing ? t("This conversation does not exist.") : t("The conversation could not be loaded.")}</h1>
    <p class="greeting-note">${isMissing ? t("It may have been deleted, or it belongs to somebody else.") : thread.error}</p>
    ${isMissing && html`<button type="button" class="button" onClick=${() => goTo(null)}>${t("New chat")}</button>`}
    ${!isMissing && html`<button type="button" class="button" onClick=${() => goTo(thread.id, { replaces: true })}>${t("Try again")}</button>`}
  </div></div>`;
}
