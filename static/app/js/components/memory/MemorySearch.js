/** Search in messages and memory, by words, dates and conversation. */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { errorText } from "../../commands/conversations.js";
import { goToPlace, searchMemory } from "../../commands/memory.js";
import { formatMoment, plainText } from "../../format.js";
import { html } from "../../html.js";
import { t } from "../../i18n.js";
import { addressOfSource } from "../../state/address.js";
import { NO_SEARCH, place } from "../../state/memory.js";
import { Icon } from "../icons.js";

/** @typedef {import("../../commands/memory.js").Found} Found */
/** @typedef {import("../../state/memory.js").Search} Search */

const SEARCH_DELAY_MS = 250;
/** @type {Record<string, string>} */
const KINDS = { message: t("Said"), entry: t("Remembered") };

export function SearchField() {
  const timer = useRef(/** @type {ReturnType<typeof setTimeout>|undefined} */ (undefined));
  const { search } = place.value;
  const onInput = (/** @type {any} */ event) => {
    const q = event.target.value.trim();
    clearTimeout(timer.current);
    timer.current = setTimeout(() => goToPlace({ search: q ? { ...search, q } : NO_SEARCH }), SEARCH_DELAY_MS);
  };
  return html`<label class="memory-search"><${Icon} name="search" size=${18} />
    <input type="search" placeholder=${t("Search everything you said")} aria-label=${t("Search memory")} defaultValue=${search.q} onInput=${onInput} /></label>`;
}

/** @param {{search: Search}} props */
export function SearchResults({ search }) {
  const found = useSignal(/** @type {Found[]|null} */ (null));
  const error = useSignal("");
  useEffect(() => {
    let isCurrent = true;
    searchMemory(search).then(
      (items) => isCurrent && ((found.value = items), (error.value = "")),
      (problem) => isCurrent && (error.value = errorText(problem)),
    );
    return () => (isCurrent = false);
  }, [search]);
  return html`<section>
    <${Filters} search=${search} />
    ${error.value && html`<p class="card is-bad" role="alert">${error.value}</p>`}
    ${!error.value && (found.value ? html`<${List} query=${search.q} items=${found.value} />` : html`<div class="skeletons" role="status" aria-label=${t("Searching…")}><i></i><i></i><i></i></div>`)}
  </section>`;
}

/** @param {{search: Search}} props */
function Filters({ search }) {
  const change = (/** @type {Partial<Search>} */ news) => goToPlace({ search: { ...search, ...news } });
  const dateField = (/** @type {"from"|"to"} */ name, /** @type {string} */ label) => html`<label><span>${label}</span>
    <input type="date" value=${search[name]} onChange=${(/** @type {any} */ event) => change({ [name]: event.target.value })} /></label>`;
  return html`<div class="search-filters">
    ${dateField("from", t("From"))}${dateField("to", t("To"))}
    ${search.conversation && html`<button type="button" class="button is-small" onClick=${() => change({ conversation: "" })}>${t("One conversation only")}<${Icon} name="close" size=${14} /></button>`}
  </div>`;
}

/** @param {{query: string, items: Found[]}} props */
function List({ query, items }) {
  const title = items.length ? t("Found for “{query}”", { query }) : t("Nothing found for “{query}”", { query });
  return html`<div role="status"><h2 class="day-title">${title}</h2></div>
    <ol class="results">${items.map((item) => html`<${Result} item=${item} />`)}</ol>`;
}

/** @param {{item: Found}} props */
function Result({ item: { text, source, created_at: at } }) {
  const only = () => goToPlace({ search: { ...place.value.search, conversation: source.conversation_id } });
  return html`<li class="result-row"><a class="result" href=${addressOfSource(source)}>
    <span class="result-text" dir="auto">${plainText(text)}</span>
    <small>${KINDS[source.kind] ?? source.kind} · ${formatMoment(at)}</small></a>
    ${source.conversation_id && !place.value.search.conversation && html`<button type="button" class="link result-only" onClick=${only}>${t("Only this conversation")}</button>`}
  </li>`;
}
