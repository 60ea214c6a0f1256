/** The deleted chats, to be restored or deleted for good. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, query } from "../api.js";
import { boot } from "../boot.js";
import { errorText } from "../commands/conversations.js";
import { goTo } from "../commands/navigation.js";
import { closeDialog, Dialog } from "../components/Dialog.js";
import { MoreButton } from "../components/MoreButton.js";
import { formatDate } from "../format.js";
import { html } from "../html.js";
import { plural, t } from "../i18n.js";
import { askToDeleteNow, askToEmpty, restore, titleOf } from "./commands.js";

/** @typedef {import("./commands.js").Trashed} Trashed */

export function TrashDialog() {
  const items = useSignal(/** @type {Trashed[]|null} */ (null));
  const next = useSignal(/** @type {string|null} */ (null));
  const error = useSignal("");
  const load = async () => {
    try {
      const page = await get(`/trash${query({ cursor: next.value })}`);
      items.value = [...(items.value ?? []), ...page.items];
      next.value = page.next_cursor;
      error.value = "";
    } catch (problem) {
      error.value = errorText(problem);
    }
  };
  useEffect(() => void load(), []);
  const back = async (/** @type {Trashed} */ { id }) => {
    if (!(await restore(id))) return;
    closeDialog();
    goTo(id);
  };
  return html`<${Dialog} title=${t("Trash")}>
    <p>${plural(boot.trash_days, "Deleted chats stay here for {n} day. What was remembered from those you deleted is removed with them.", "Deleted chats stay here for {n} days. What was remembered from those you deleted is removed with them.")}</p>
    ${error.value && html`<p class="form-error" role="alert">${error.value}</p>`}
    ${items.value?.length === 0 && html`<p class="muted">${t("The trash is empty.")}</p>`}
    ${
      items.value &&
      items.value.length > 0 &&
      html`<div class="dialog-actions"><button type="button" class="button is-danger" onClick=${askToEmpty}>${t("Empty trash")}</button></div>
      <ul class="trash">${items.value.map((item) => html`<${Row} key=${item.id} item=${item} onRestore=${back} />`)}</ul>
      ${next.value && html`<div class="dialog-actions"><${MoreButton} className="button" label=${t("Show more")} load=${load} /></div>`}`
    }
  <//>`;
}

/** @param {{item: Trashed, onRestore: (item: Trashed) => void}} props */
function Row({ item, onRestore }) {
  const title = titleOf(item);
  const until = { date: formatDate(item.purge_at) };
  return html`<li class="trash-row">
    <span class="trash-text"><span><bdi>${title}</bdi></span>
      <small class="muted">${item.reason === "idle" ? t("Unused for a long time · removed for good on {date}", until) : t("Deleted by you · removed for good on {date}", until)}</small></span>
    <button type="button" class="button" aria-label=${t("Restore {title}", { title })} onClick=${() => onRestore(item)}>${t("Restore")}</button>
    <button type="button" class="button is-danger" aria-label=${t("Delete now: {title}", { title })} onClick=${() => askToDeleteNow(item)}>${t("Delete now")}</button>
  </li>`;
}
