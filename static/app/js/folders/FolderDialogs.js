/** Dialogs that create or change a folder, and move conversations to one. */

import { moveSelected } from "../bulk/commands.js";
import { closeDialog, Dialog } from "../components/Dialog.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { state } from "../state/store.js";
import { moveConversation, openFolderDialog, saveFolder } from "./commands.js";
import { FolderFiles } from "./FolderFiles.js";
import { folders } from "./store.js";

/** @param {{folder: import("./store.js").Folder|null, moves?: (folder: string) => unknown}} props */
export function FolderDialog({ folder, moves }) {
  const save = async (/** @type {any} */ event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    const fields = { name: form.get("name"), instructions: form.get("instructions") };
    // Until the agents are loaded, the user could not choose one, so the folder keeps its agent.
    const chosen = state.value.agents.length ? { agent: form.get("agent") || null } : {};
    const saved = await saveFolder(folder, { ...fields, ...chosen });
    if (!saved) return;
    closeDialog();
    await moves?.(saved.id);
  };
  return html`<${Dialog} title=${folder ? t("Edit folder") : t("New folder")} className="is-small">
    <form onSubmit=${save}>
      <label class="field"><span>${t("Name")}</span>
        <input name="name" required maxlength="150" defaultValue=${folder?.name ?? ""} autofocus /></label>
      <label class="field"><span>${t("Instructions for every chat in it")}</span>
        <textarea name="instructions" rows="5" maxlength="32000" defaultValue=${folder?.instructions ?? ""}></textarea></label>
      <label class="field"><span>${t("Agent of new chats")}</span>
        <select name="agent">
          ${state.value.agents.map(({ name, is_default: isDefault }) => html`<option value=${isDefault ? "" : name} selected=${isDefault ? !folder?.agent : name === folder?.agent}>${name}</option>`)}
        </select></label>
      ${folder && html`<${FolderFiles} folderId=${folder.id} />`}
      <div class="dialog-actions">
        <button type="button" class="button" onClick=${closeDialog}>${t("Cancel")}</button>
        <button class="button is-primary">${t("Save")}</button>
      </div>
    </form>
  <//>`;
}

/** @param {{conversation: import("../state/types.js").Conversation|null}} props null for all selected ones */
export function MoveDialog({ conversation }) {
  const moveTo = (/** @type {string|null} */ folder) => (conversation ? moveConversation(conversation.id, folder) : moveSelected(folder));
  const current = conversation?.folder ?? "";
  const choices = [{ id: "", name: t("No folder") }, ...folders.value];
  const move = (/** @type {any} */ event) => {
    event.preventDefault();
    const id = String(new FormData(event.target).get("folder") ?? "");
    closeDialog();
    moveTo(id || null);
  };
  return html`<${Dialog} title=${t("Move to folder")} className="is-small">
    <form onSubmit=${move}>
      <fieldset class="choices"><legend class="visually-hidden">${t("Folder")}</legend>
        ${choices.map(
          ({ id, name }) => html`<label class="choice"><input type="radio" name="folder" value=${id}
            defaultChecked=${id === current} autofocus=${id === current} /><span><bdi>${name}</bdi></span></label>`,
        )}
      </fieldset>
      <div class="dialog-actions">
        <button type="button" class="button" onClick=${() => openFolderDialog(null, moveTo)}>${t("New folder…")}</button>
        <button class="button is-primary">${t("Move")}</button>
      </div>
    </form>
  <//>`;
}
