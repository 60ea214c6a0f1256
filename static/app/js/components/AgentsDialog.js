/** The user's own agents: the list, a form for one of them, and import and export as YAML. */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { deleteAgent, exportAddress, importAgent, listTools, NEW_AGENT, readAgent, saveAgent } from "../commands/agents.js";
import { errorText } from "../commands/conversations.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { models, state } from "../state/store.js";
import { AskFirst } from "./AskFirst.js";
import { Dialog } from "./Dialog.js";
import { Icon } from "./icons.js";
import { useInPlace } from "./inPlace.js";

/** @typedef {import("../commands/agents.js").AgentForm} AgentForm */
/** @typedef {import("../commands/agents.js").Tool} Tool */

const MODES = [
  ["react", t("Direct: one step after the other")],
  ["plan", t("Plan: steps planned first")],
  ["auto", t("Auto: whichever fits")],
];

export function AgentsDialog() {
  const editing = useSignal(/** @type {{id: string|null, form: AgentForm}|null} */ (null));
  const problem = useSignal("");
  const notes = useSignal(/** @type {string[]} */ ([]));
  const attempt = async (/** @type {() => Promise<unknown>} */ work) => {
    problem.value = "";
    notes.value = [];
    try {
      await work();
    } catch (error) {
      problem.value = errorText(error);
    }
  };
  const edit = (/** @type {string} */ id) => attempt(async () => (editing.value = { id, form: await readAgent(id) }));
  const take = (/** @type {File} */ file) =>
    attempt(async () => (notes.value = (await importAgent(await file.text())).notes ?? []));
  const done = () => (editing.value = null);
  return html`<${Dialog} title=${editing.value ? (editing.value.id ? t("Change the agent") : t("New agent")) : t("Your agents")}>
    ${problem.value && html`<p class="form-error" role="alert">${problem.value}</p>`}
    <div role="status">${notes.value.length > 0 && html`<ul class="notice-list">${notes.value.map((note) => html`<li>${note}</li>`)}</ul>`}</div>
    ${
      editing.value
        ? html`<${AgentFormView} key=${editing.value.id} ...${editing.value} onDone=${done} attempt=${attempt} />`
        : html`<${OwnAgents} onEdit=${edit} onDelete=${(/** @type {string} */ id) => attempt(() => deleteAgent(id))} onNew=${() => (editing.value = { id: null, form: NEW_AGENT })} onImport=${take} />`
    }
  <//>`;
}

/**
 * @param {{onEdit: (id: string) => void, onDelete: (id: string) => void, onNew: () => void,
 *   onImport: (file: File) => void}} props
 */
function OwnAgents({ onEdit, onDelete, onNew, onImport }) {
  const field = useRef(/** @type {HTMLInputElement|null} */ (null));
  const own = state.value.agents.filter((agent) => agent.is_mine);
  const onChosen = () => {
    const file = field.current?.files?.[0];
    if (file) onImport(file);
    if (field.current) field.current.value = "";
  };
  return html`
    ${own.length === 0 && html`<p class="muted">${t("An agent has instructions, a model and tools of its own. Make one for tasks that you repeat.")}</p>`}
    <ul class="tokens">${own.map((agent) => html`<${OwnAgent} key=${agent.id} agent=${agent} onEdit=${onEdit} onDelete=${onDelete} />`)}</ul>
    <div class="card-actions">
      <button type="button" class="button is-primary" onClick=${onNew}><${Icon} name="plus" size=${16} />${t("New agent")}</button>
      <input ref=${field} type="file" accept=".yaml,.yml,application/yaml,text/yaml" hidden onChange=${onChosen} aria-label=${t("YAML file")} />
      <button type="button" class="button" onClick=${() => field.current?.click()}>${t("Import YAML")}</button>
    </div>`;
}

/**
 * @param {{agent: import("../state/types.js").Agent, onEdit: (id: string) => void,
 *   onDelete: (id: string) => void}} props
 */
function OwnAgent({ agent, onEdit, onDelete }) {
  const { isOpen: isAsked, opener, close } = useInPlace();
  if (isAsked.value)
    return html`<li><${AskFirst} text=${t("The instructions and settings of {name} will be gone for good. Its chats are kept.", { name: agent.name })}
      action=${t("Delete {name}", { name: agent.name })} onConfirm=${() => onDelete(agent.id)} onCancel=${close} /></li>`;
  return html`<li class="token"><${Icon} name="spark" size=${18} />
    <span class="token-text"><strong><bdi>${agent.name}</bdi></strong><small>${[agent.mode, agent.model].filter(Boolean).join(" · ")}</small></span>
    <button type="button" class="icon-button is-small" aria-label=${t("Change {name}", { name: agent.name })} title=${t("Change")} onClick=${() => onEdit(agent.id)}><${Icon} name="rename" size=${18} /></button>
    <a class="icon-button is-small" href=${exportAddress(agent.id)} download aria-label=${t("Export {name} as YAML", { name: agent.name })} title=${t("Export as YAML")}><${Icon} name="export" size=${18} /></a>
    <button type="button" ref=${opener} class="icon-button is-small" aria-label=${t("Delete {name}", { name: agent.name })} title=${t("Delete")} onClick=${() => (isAsked.value = true)}><${Icon} name="trash" size=${18} /></button></li>`;
}

/**
 * @param {{id: string|null, form: AgentForm, onDone: () => void,
 *   attempt: (work: () => Promise<unknown>) => Promise<void>}} props
 */
function AgentFormView({ id, form, onDone, attempt }) {
  const tools = useSignal(/** @type {Tool[]|null} */ (null));
  const picksTools = useSignal(form.tools !== null);
  useEffect(() => void attempt(async () => (tools.value = await listTools())), []);
  const save = (/** @type {any} */ event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    const text = (/** @type {string} */ name) => String(given.get(name) ?? "").trim();
    // Tools that are not shown (not loaded yet, or switched off) could not be chosen, so the agent keeps them.
    const kept = (form.tools ?? []).filter((name) => !tools.value?.some((tool) => tool.name === name));
    const picked = [.../** @type {string[]} */ (given.getAll("tool")), ...kept];
    const changed = {
      name: text("name"),
      model: text("model") || null,
      mode: text("mode"),
      system_prompt: text("system_prompt"),
      greeting: text("greeting"),
      uses_memory: given.has("uses_memory"),
      tools: picksTools.value ? picked : null,
    };
    attempt(async () => {
      await saveAgent(id, changed);
      onDone();
    });
  };
  return html`<form class="agent-form" onSubmit=${save}>
    <label class="field"><span>${t("Name")}</span><input name="name" required maxlength="100" autocomplete="off" defaultValue=${form.name} autofocus /></label>
    <label class="field"><span>${t("Instructions")}</span><textarea name="system_prompt" rows="5" maxlength="32000" dir="auto" placeholder=${t("What it is, what it does, how it speaks")} defaultValue=${form.system_prompt}></textarea></label>
    <label class="field"><span>${t("Greeting")}</span><input name="greeting" maxlength="2000" autocomplete="off" defaultValue=${form.greeting} /></label>
    <div class="field-pair">
      <label class="field"><span>${t("Model")}</span><select name="model"><option value="" selected=${form.model === null}>${t("The default one")}</option>${models.value.filter((model) => model.is_offered || model.name === form.model).map((model) => html`<option value=${model.name} selected=${model.name === form.model}>${model.name}</option>`)}</select></label>
      <label class="field"><span>${t("Mode")}</span><select name="mode">${MODES.map(([mode, name]) => html`<option value=${mode} selected=${mode === form.mode}>${name}</option>`)}</select></label>
    </div>
    <label class="check-line"><input type="checkbox" name="uses_memory" defaultChecked=${form.uses_memory} />${t("Use memory: remember its chats and recall other chats")}</label>
    <label class="check-line"><input type="checkbox" checked=${picksTools.value} onChange=${(/** @type {any} */ event) => (picksTools.value = event.target.checked)} />${t("Only some of the tools")}</label>
    ${
      picksTools.value &&
      html`<fieldset class="tool-picks"><legend class="visually-hidden">${t("Tools")}</legend>
        ${tools.value?.map((tool) => html`<label class="check-line" title=${tool.description}><input type="checkbox" name="tool" value=${tool.name} defaultChecked=${form.tools?.includes(tool.name) ?? true} />${tool.name}</label>`)}
      </fieldset>`
    }
    <div class="dialog-actions">
      <button type="button" class="button" onClick=${onDone}>${t("Cancel")}</button>
      <button class="button is-primary">${t("Save")}</button>
    </div>
  </form>`;
}
