/** A new chat: a greeting, suggestions, and a note if no real model is connected. */

import { boot } from "../boot.js";
import { chosenFolder, folderNamed } from "../folders/store.js";
import { greeting } from "../format.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { loadModels } from "../commands/navigation.js";
import { draftText } from "../state/draft.js";
import { currentAgent, currentModel, state } from "../state/store.js";
import { writeDraft } from "../storage.js";
import { Composer } from "./Composer.js";
import { Icon } from "./icons.js";

const SUGGESTIONS = [
  { icon: "memory", title: t("Recall"), text: t("What do you remember about what I am working on?") },
  {
    icon: "spark",
    title: t("Think aloud"),
    text: t("Help me weigh a decision: ask me one question at a time, then summarize."),
  },
  {
    icon: "wrench",
    title: t("Write code"),
    text: t("Write a Python function that merges overlapping intervals, with tests."),
  },
  {
    icon: "compose",
    title: t("Draft"),
    text: t("Draft a short, warm note that declines a meeting and offers two other times."),
  },
];

export function EmptyState() {
  const name = boot.user.name.split(" ")[0];
  const hello = greeting(new Date());
  return html`<div class="empty">
    <div class="empty-inner">
      <h1 class="greeting">${name ? t("{hello}, {name}.", { hello, name }) : t("{hello}.", { hello })}</h1>
      <p class="greeting-note">${currentAgent.value?.greeting || t("Ask anything. You can read the whole chat, however long it becomes.")}</p>
      <${Place} />
      <${Composer} />
      <${ModelProblem} />
      <ul class="suggestions">
        ${SUGGESTIONS.map((suggestion) => html`<li><${Suggestion} ...${suggestion} /></li>`)}
      </ul>
      <${DemoNote} />
    </div>
  </div>`;
}

/** Render the folder in which the chat begins. */
function Place() {
  const folder = folderNamed(chosenFolder.value);
  if (!folder) return null;
  return html`<p class="greeting-note">${t("This chat begins in {name}.", { name: folder.name })}
    <button type="button" class="link" onClick=${() => (chosenFolder.value = null)}>${t("Not in a folder")}</button></p>`;
}

/** @param {{icon: string, title: string, text: string}} props */
function Suggestion({ icon, title, text }) {
  const take = () => {
    // Keep what the user has begun to write.
    draftText.value = draftText.value.trim() ? `${draftText.value.trimEnd()}\n\n${text}` : text;
    writeDraft(null, draftText.value);
    document.getElementById("composer")?.focus();
  };
  return html`<button type="button" class="suggestion" onClick=${take}>
    <${Icon} name=${icon} size=${18} /><span><strong>${title}</strong><small>${text}</small></span>
  </button>`;
}

const connectLink = () =>
  boot.admin_url &&
  html`<a class="button is-small" href=${`${boot.admin_url}chatapp/modelconfig/connect/`}>${t("Connect a model")}</a>`;

function ModelProblem() {
  const { modelsState } = state.value;
  if (modelsState === "failed") {
    return html`<${Note} isBad text=${t("The list of models could not be loaded.")}
      action=${html`<button type="button" class="button is-small" onClick=${loadModels}>${t("Try again")}</button>`} />`;
  }
  if (modelsState === "loading" || currentModel.value) return null;
  const whatToDo = boot.admin_url ? t("Connect one to begin.") : t("Ask the operator of this server to connect one.");
  return html`<${Note} isBad text=${`${t("No model is connected yet.")} ${whatToDo}`} action=${connectLink()} />`;
}

function DemoNote() {
  if (!currentModel.value?.demo) return null;
  const text = boot.admin_url
    ? t(
        "You are talking to the built-in demo model. It shows streaming, memory and summaries, but it is not a language model. Connect a real one here, or start the server with OPENAI_BASE_URL and LLM_MODEL.",
      )
    : t(
        "You are talking to the built-in demo model: it shows how this works, but it is not a language model. The operator of this server can connect a real one.",
      );
  return html`<${Note} text=${text} action=${connectLink()} />`;
}

/** @param {{text: string, action?: any, isBad?: boolean}} props */
function Note({ text, action, isBad = false }) {
  return html`<div class=${`card ${isBad ? "is-bad" : ""}`} role=${isBad ? "alert" : "note"}>
    <${Icon} name=${isBad ? "warning" : "spark"} />
    <div class="card-body"><p>${text}</p>${action && html`<div class="card-actions">${action}</div>`}</div>
  </div>`;
}
