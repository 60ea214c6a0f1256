/** One day of memory: its entries, or its Markdown in an editor. */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { errorText } from "../../commands/conversations.js";
import { addEntry, goToPlace, loadDays, readDay, writeDay } from "../../commands/memory.js";
import { formatDay } from "../../format.js";
import { html } from "../../html.js";
import { t } from "../../i18n.js";
import { days } from "../../state/memory.js";
import { Icon, Mark } from "../icons.js";
import { EntryCard } from "./EntryCard.js";
import { askToForget } from "../ForgetDialog.js";
import { useNear } from "../near.js";
import { TextEditor } from "./TextEditor.js";

/** @typedef {import("../../commands/memory.js").DayFile} DayFile */
/** @typedef {{entries: DayFile["entries"], onChanged: () => void, onForgotten: () => void}} Listed */

const AT_ONCE = 50;

/** @param {{day: string|null}} props null while the days are loading, or if there are none */
export function DayView({ day }) {
  const file = useSignal(/** @type {DayFile|null} */ (null));
  const problem = useSignal("");
  const doing = useSignal(/** @type {"edit"|"add"|null} */ (null));
  const reload = async () => {
    loadDays();
    try {
      file.value = day ? await readDay(day) : null;
    } catch (error) {
      file.value = null;
      problem.value = errorText(error);
    }
  };
  useEffect(() => {
    if (!day) return;
    readDay(day).then(
      (read) => (file.value = read),
      (error) => (problem.value = errorText(error)),
    );
  }, [day]);
  useEffect(() => {
    if (file.value && location.hash.startsWith("#e-")) document.querySelector(location.hash)?.scrollIntoView({ block: "center" });
  }, [file.value]);
  const add = async (/** @type {string} */ text) => {
    const { day: written } = await addEntry(text, day ?? undefined);
    doing.value = null;
    if (written === day) await reload();
    else loadDays().then(() => goToPlace({ view: "days", day: written }));
  };
  const leave = () => goToPlace({ view: "days", day: null });
  // A day disappears with its last entry.
  const noteForgotten = () => (file.value && file.value.entries.length > 1 ? reload() : loadDays().then(leave));
  const adding = doing.value === "add" && html`<${TextEditor} label=${t("To remember")} text="" action=${t("Remember")} onSave=${add} onCancel=${() => (doing.value = null)} />`;
  if (!day && days.value?.length === 0) return html`<${NothingYet} adding=${adding} onAdd=${() => (doing.value = "add")} />`;
  if (problem.value) return html`<p class="muted" role="status">${problem.value}</p>`;
  if (!day || !file.value)
    return html`<div class="skeletons" role="status" aria-label=${t("Loading…")}><i></i><i></i><i></i></div>`;
  const saved = (/** @type {DayFile} */ written) => {
    file.value = written;
    doing.value = null;
    loadDays();
  };
  return html`<article>
    <header class="view-head">
      <h2 class="day-title">${formatDay(day)}</h2>
      <${Tools} file=${file.value} doing=${doing} onForgotten=${leave} />
    </header>
    ${adding}
    ${
      doing.value === "edit"
        ? html`<${MarkdownEditor} file=${file.value} onSaved=${saved} onCancel=${() => (doing.value = null)} />`
        : html`<${Entries} entries=${file.value.entries} onChanged=${reload} onForgotten=${noteForgotten} />`
    }
  </article>`;
}

/** Render the first entries, and the others when the reader scrolls near them. @param {Listed} props */
function Entries({ entries, onChanged, onForgotten }) {
  return html`${entries.slice(0, AT_ONCE).map((entry) => html`<${EntryCard} key=${entry.id} entry=${entry} onChanged=${onChanged} onForgotten=${onForgotten} />`)}
    ${entries.length > AT_ONCE && html`<${LaterEntries} key="later" entries=${entries.slice(AT_ONCE)} onChanged=${onChanged} onForgotten=${onForgotten} />`}`;
}

/** @param {Listed} props */
function LaterEntries(props) {
  const place = useRef(null);
  const isNear = useNear(place, !props.entries.some(({ id }) => location.hash === `#e-${id}`));
  return isNear ? html`<${Entries} ...${props} />` : html`<div ref=${place} class="entries-later"></div>`;
}

/** @param {{file: DayFile, doing: {value: "edit"|"add"|null}, onForgotten: () => void}} props */
function Tools({ file: { day, entries }, doing, onForgotten }) {
  const forget = () =>
    askToForget({
      title: t("Forget this day?"),
      text: t("Its entries ({n}), what you and the assistant said on that day, and everything made from it will be gone for good. What was said on other days is kept.", {
        n: entries.length,
      }),
      forgetTarget: { day },
      onDone: () => loadDays().then(onForgotten),
    });
  return html`<div class="view-tools">
    <button type="button" class="button is-small" onClick=${() => (doing.value = "add")}><${Icon} name="plus" size=${16} />${t("Add")}</button>
    <button type="button" class="button is-small" aria-pressed=${doing.value === "edit"} onClick=${() => (doing.value = doing.value === "edit" ? null : "edit")}><${Icon} name="rename" size=${16} />${t("Edit the day")}</button>
    <button type="button" class="button is-small" onClick=${forget}><${Icon} name="trash" size=${16} />${t("Forget")}</button>
  </div>`;
}

/** @param {{file: DayFile, onSaved: (file: DayFile) => void, onCancel: () => void}} props */
function MarkdownEditor({ file, onSaved, onCancel }) {
  const save = async (/** @type {string} */ markdown) => onSaved(await writeDay(file, markdown));
  return html`
    <p class="muted">${t("A section you remove is forgotten. Leave the comment below each heading as it is; “## 14:05” begins a section of your own.")}</p>
    <${TextEditor} label=${t("Markdown of the day")} text=${file.markdown} action=${t("Save")} isCode onSave=${save} onCancel=${onCancel} />`;
}

/** @param {{adding: any, onAdd: () => void}} props */
function NothingYet({ adding, onAdd }) {
  return html`<div class="nothing"><${Mark} size=${40} />
    <h2 class="day-title">${t("Nothing has been written down yet.")}</h2>
    <p>${t("When a conversation grows long, its older part is summarized, and the summary is kept here, day by day.")}</p>
    ${adding || html`<button type="button" class="button" onClick=${onAdd}><${Icon} name="plus" size=${16} />${t("Remember something yourself")}</button>`}</div>`;
}
