/** Ctrl+K: one field for chats, messages and actions. The field keeps the focus; arrows choose, and Enter opens. */

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { errorText } from "../commands/conversations.js";
import { actions, find, recentChats } from "../commands/palette.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { Excerpt } from "../search/Excerpt.js";
import { grouped, matching, stepTo } from "../state/palette.js";
import { closeDialog, Dialog } from "./Dialog.js";
import { Icon } from "./icons.js";

/** @typedef {import("../state/palette.js").Choice} Choice */

const SEARCH_DELAY_MS = 180;
const GROUPS = { Actions: t("Actions"), Chats: t("Chats"), Messages: t("Messages") };

export function Palette() {
  const text = useSignal("");
  const at = useSignal(0);
  const { found, problem, isSearching } = useFound(text.value.trim());
  const offered = useMemo(actions, []);
  const choices = [...found, ...matching(offered, text.value)];
  const chosen = choices[Math.min(at.value, choices.length - 1)];
  useEffect(() => {
    if (chosen) document.getElementById(`palette-${chosen.id}`)?.scrollIntoView({ block: "nearest" });
  }, [chosen?.id]);
  const choose = (/** @type {Choice|undefined} */ choice) => {
    if (!choice) return;
    closeDialog();
    choice.onChoose();
  };
  /** Whether Enter was pressed before the results arrived; it then chooses the first of them. */
  const wasEntered = useRef(false);
  useEffect(() => {
    if (wasEntered.current && !isSearching) choose(chosen);
  }, [isSearching]);
  const onInput = (/** @type {any} */ event) => {
    text.value = event.target.value;
    at.value = 0;
    wasEntered.current = false;
  };
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    if (event.isComposing) return;
    const to = stepTo(event.key, choices.indexOf(chosen), choices.length);
    if (to === null && event.key !== "Enter") return;
    event.preventDefault();
    wasEntered.current = to === null && isSearching && at.value === 0;
    if (to !== null) at.value = to;
    else if (!wasEntered.current) choose(chosen);
  };
  return html`<${Dialog} title=${t("Go to")} className="palette">
    <input type="text" role="combobox" autofocus aria-label=${t("Search chats, messages and actions")} placeholder=${t("Search chats, messages and actions")}
      aria-expanded=${choices.length > 0} aria-controls="palette-list" aria-autocomplete="list" aria-activedescendant=${chosen && `palette-${chosen.id}`}
      autocomplete="off" value=${text.value} onInput=${onInput} onKeyDown=${onKeyDown} />
    <div id="palette-list" role="listbox" class="palette-list" aria-label=${t("Results")} aria-busy=${isSearching} tabindex="-1">
      ${grouped(choices).map(
        ({ name, items }) => html`<div role="group" key=${name} aria-label=${GROUPS[name]}>
          <p class="group-name" aria-hidden="true">${GROUPS[name]}</p>
          ${items.map((item) => html`<${Row} key=${item.id} item=${item} isChosen=${item === chosen} choose=${choose} />`)}
        </div>`,
      )}
    </div>
    <p class="palette-note" role="status">${problem || (isSearching ? t("Searching…") : !choices.length && t("Nothing was found."))}</p>
  <//>`;
}

/** @param {{item: Choice, isChosen: boolean, choose: (item: Choice) => void}} props */
function Row({ item, isChosen, choose }) {
  return html`<div role="option" id=${`palette-${item.id}`} class=${`menu-item ${isChosen ? "is-chosen" : ""}`} aria-selected=${isChosen} onClick=${() => choose(item)}>
    <${Icon} name=${item.icon} size=${18} /><span class="palette-label" dir="auto">${item.excerpt ? html`<${Excerpt} spans=${item.excerpt} />` : item.label}</span>${item.note && html`<small>${item.note}</small>`}</div>`;
}

/**
 * Return the newest chats without a query, otherwise what the query finds, a moment after the last key.
 * @param {string} q
 */
function useFound(q) {
  const answer = useSignal({ q: "", found: recentChats(), problem: "" });
  useEffect(() => {
    if (!q) answer.value = { q, found: recentChats(), problem: "" };
    if (!q) return undefined;
    let isCurrent = true;
    const show = (/** @type {Choice[]} */ found, /** @type {string} */ problem) => {
      if (isCurrent) answer.value = { q, found, problem };
    };
    const timer = setTimeout(() => find(q).then((choices) => show(choices, ""), (error) => show([], errorText(error))), SEARCH_DELAY_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [q]);
  const { found, problem } = answer.value;
  const isSearching = answer.value.q !== q;
  return { found, problem: isSearching ? "" : problem, isSearching };
}
