/** Search in all messages and memory, with filters. A result opens at its message. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { errorText } from "../commands/conversations.js";
import { goToMessage } from "../commands/navigation.js";
import { closeDialog, Dialog } from "../components/Dialog.js";
import { folders } from "../folders/store.js";
import { formatMoment } from "../format.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { addressOfSource } from "../state/address.js";
import { state } from "../state/store.js";
import { NO_FILTERS, searchSaid } from "./commands.js";
import { Excerpt } from "./Excerpt.js";

/** @typedef {import("./commands.js").Hit} Hit */

const SEARCH_DELAY_MS = 200;

/** @param {{q?: string}} props */
export function SearchDialog({ q = "" }) {
  const filters = useSignal({ ...NO_FILTERS, q });
  const found = useSignal(/** @type {Hit[]|null} */ (null));
  const problem = useSignal("");
  useEffect(() => {
    if (!filters.value.q.trim()) {
      found.value = null;
      return undefined;
    }
    let isCurrent = true;
    const show = (/** @type {Hit[]} */ hits, /** @type {string} */ sentence) => {
      if (!isCurrent) return;
      found.value = hits;
      problem.value = sentence;
    };
    const timer = setTimeout(() => searchSaid(filters.value).then((hits) => show(hits, ""), (error) => show([], errorText(error))), SEARCH_DELAY_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [filters.value]);
  const onInput = (/** @type {any} */ event) => {
    filters.value = { ...filters.value, [event.target.name]: event.target.value };
  };
  return html`<${Dialog} title=${t("Search messages")} className="search-dialog">
    <form role="search" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()} onInput=${onInput}>
      <label class="field"><span>${t("Words or a question")}</span><input type="search" name="q" defaultValue=${q} maxlength="2000" autocomplete="off" autofocus /></label>
      <div class="search-filters">
        <${Choice} name="folder" label=${t("Folder")} any=${t("All folders")} choices=${folders.value.map(({ id, name }) => [id, name])} />
        <${Choice} name="agent" label=${t("Agent")} any=${t("All agents")} choices=${state.value.agents.map((agent) => [agent.is_default ? "default" : agent.name, agent.name])} />
        <${Choice} name="role" label=${t("Said by")} any=${t("Anybody")} choices=${[["user", t("You")], ["assistant", t("Assistant")]]} />
        <label class="field"><span>${t("From")}</span><input type="date" name="from" max=${filters.value.to} /></label>
        <label class="field"><span>${t("To")}</span><input type="date" name="to" min=${filters.value.from} /></label>
      </div>
    </form>
    <p class="muted" role="status">${problem.value || (found.value && !found.value.length && t("Nothing was found."))}</p>
    ${found.value && found.value.length > 0 && html`<ol class="search-hits">${found.value.map((hit) => html`<${Row} hit=${hit} />`)}</ol>`}
  <//>`;
}

/** @param {{name: string, label: string, any: string, choices: string[][]}} props */
const Choice = ({ name, label, any, choices }) =>
  html`<label class="field"><span>${label}</span><select name=${name}>
    <option value="">${any}</option>${choices.map(([value, text]) => html`<option value=${value}>${text}</option>`)}</select></label>`;

/** @param {{hit: Hit}} props */
function Row({ hit: { excerpt, title, role, source, created_at: at } }) {
  const { conversation_id: chat, message_id: message } = source;
  const open = (/** @type {MouseEvent} */ event) => {
    if (!chat || !message || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    closeDialog();
    goToMessage(chat, message);
  };
  const who = role === "user" ? t("You") : role === "assistant" ? t("Assistant") : t("Remembered");
  return html`<li><a class="search-hit" href=${addressOfSource(source)} onClick=${open}>
    <${Excerpt} spans=${excerpt} /><small>${[who, title, formatMoment(at)].filter(Boolean).join(" · ")}</small></a></li>`;
}
