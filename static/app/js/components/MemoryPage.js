/** The memory page: the days at the left, what was kept of one of them at the right. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { boot } from "../boot.js";
import { sentenceOf } from "../commands/conversations.js";
import { listDays, readDay, searchMemory } from "../commands/memory.js";
import { formatDay, formatMoment, plainText } from "../format.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { ThemeSwitch } from "./AccountRow.js";
import { Icon, Mark } from "./icons.js";
import { Markdown } from "./Markdown.js";
import { addressOf } from "./Recalled.js";

/** @typedef {import("../commands/memory.js").Day} Day */
/** @typedef {import("../commands/memory.js").DayFile} DayFile */
/** @typedef {import("../commands/memory.js").Found} Found */

const SEARCH_DELAY_MS = 250;

/** @param {{day: string|null}} props the day of the address, if it names one */
export function MemoryPage({ day }) {
  const days = useSignal(/** @type {Day[]|null} */ (null));
  const cursor = useSignal(/** @type {string|null} */ (null));
  const opened = useSignal(day);
  const query = useSignal("");
  const error = useSignal("");
  const loadMore = async () => {
    try {
      const page = await listDays(cursor.value);
      days.value = [...(days.value ?? []), ...page.items];
      cursor.value = page.next_cursor;
      opened.value ??= page.items[0]?.day ?? null;
    } catch (problem) {
      error.value = sentenceOf(problem);
    }
  };
  useEffect(() => void loadMore(), []);
  const open = (/** @type {string} */ chosen) => {
    opened.value = chosen;
    query.value = "";
    history.replaceState(null, "", `/memory?day=${chosen}`);
  };
  return html`<div class="memory-page">
    <header class="memory-head">
      <a class="icon-button" href="/" aria-label=${t("Back to the chat")} title=${t("Back to the chat")}><span class="turned"><${Icon} name="right" /></span></a>
      <a class="wordmark" href="/"><${Mark} size=${22} /><span>${boot.product_name}</span></a>
      <span class="spacer"></span><${ThemeSwitch} />
    </header>
    <div class="memory-body">
      <nav class="days" aria-label=${t("Days")}>
        <h1>${t("Memory")}</h1>
        <${SearchField} value=${query.value} onQuery=${(/** @type {string} */ text) => (query.value = text)} />
        ${days.value === null && !error.value && html`<div class="skeletons" aria-hidden="true"><i></i><i></i><i></i></div>`}
        <ul>${(days.value ?? []).map((one) => html`<${DayRow} key=${one.day} day=${one} isOpen=${!query.value && one.day === opened.value} onOpen=${open} />`)}</ul>
        ${cursor.value && html`<button type="button" class="button is-wide" onClick=${loadMore}>${t("Earlier days")}</button>`}
      </nav>
      <main class="day">
        ${error.value && html`<p class="card is-bad" role="alert">${error.value}</p>`}
        ${query.value ? html`<${Results} key=${query.value} query=${query.value} />` : html`<${DayView} key=${opened.value} day=${opened.value} isEmpty=${days.value?.length === 0} />`}
      </main>
    </div>
  </div>`;
}

/** @param {{day: Day, isOpen: boolean, onOpen: (day: string) => void}} props */
function DayRow({ day, isOpen, onOpen }) {
  const open = (/** @type {MouseEvent} */ event) => {
    event.preventDefault();
    onOpen(day.day);
  };
  const count = day.entry_count === 1 ? t("1 entry") : t("{n} entries", { n: day.entry_count });
  return html`<li><a class=${`day-row ${isOpen ? "is-open" : ""}`} href=${`/memory?day=${day.day}`} aria-current=${isOpen ? "page" : undefined} onClick=${open}>
    <span>${formatDay(day.day)}</span><small>${count}</small></a></li>`;
}

/** @param {{value: string, onQuery: (text: string) => void}} props */
function SearchField({ value, onQuery }) {
  const timer = useSignal(/** @type {ReturnType<typeof setTimeout>|undefined} */ (undefined));
  const onInput = (/** @type {any} */ event) => {
    const text = event.target.value.trim();
    clearTimeout(timer.peek());
    timer.value = setTimeout(() => onQuery(text), SEARCH_DELAY_MS);
  };
  return html`<label class="memory-search"><${Icon} name="search" size=${18} />
    <input type="search" placeholder=${t("Search everything you said")} aria-label=${t("Search memory")} defaultValue=${value} onInput=${onInput} /></label>`;
}

/** @param {{day: string|null, isEmpty: boolean}} props */
function DayView({ day, isEmpty }) {
  const file = useSignal(/** @type {DayFile|null} */ (null));
  const error = useSignal("");
  useEffect(() => {
    if (day)
      readDay(day).then(
        (read) => (file.value = read),
        (problem) => (error.value = sentenceOf(problem)),
      );
  }, [day]);
  if (isEmpty && !day) return html`<${NothingYet} />`;
  if (error.value) return html`<p class="muted">${error.value}</p>`;
  if (!day || !file.value)
    return html`<div class="skeletons" role="status" aria-label=${t("Loading…")}><i></i><i></i><i></i></div>`;
  return html`<article>
    <h2 class="day-title">${formatDay(day)}</h2>
    ${file.value.entries.map((entry) => html`<${Entry} key=${entry.id} entry=${entry} />`)}
  </article>`;
}

/** @param {{entry: import("../commands/memory.js").Entry}} props */
function Entry({ entry }) {
  const { conversation_id: conversation, first_message_id: first } = entry;
  const link = conversation && `/c/${conversation}${first ? `#m-${first}` : ""}`;
  return html`<section class="entry">
    <p class="entry-head"><time datetime=${entry.created_at}>${formatMoment(entry.created_at)}</time>
      ${link ? html`<a href=${link}><${Icon} name="link" size=${14} />${t("From this conversation")}</a>` : html`<span>${t("Its conversation is gone")}</span>`}</p>
    <${Markdown} text=${entry.text} />
  </section>`;
}

/** @param {{query: string}} props */
function Results({ query }) {
  const found = useSignal(/** @type {Found[]|null} */ (null));
  const error = useSignal("");
  useEffect(() => {
    searchMemory(query).then(
      (items) => (found.value = items),
      (problem) => (error.value = sentenceOf(problem)),
    );
  }, [query]);
  if (error.value) return html`<p class="card is-bad" role="alert">${error.value}</p>`;
  if (!found.value)
    return html`<div class="skeletons" role="status" aria-label=${t("Searching…")}><i></i><i></i><i></i></div>`;
  const title = found.value.length ? t("Found for “{query}”", { query }) : t("Nothing found for “{query}”", { query });
  return html`<section><h2 class="day-title" role="status">${title}</h2>
    <ol class="results">${found.value.map(
      (item) => html`<li><a class="result" href=${addressOf(item.source)}>
      <span class="result-text">${plainText(item.text)}</span>
      <small>${item.source.kind} · ${formatMoment(item.created_at)}</small></a></li>`,
    )}</ol>
  </section>`;
}

function NothingYet() {
  return html`<div class="nothing"><${Mark} size=${40} />
    <h2 class="day-title">${t("Nothing has been written down yet.")}</h2>
    <p>${t("When a conversation grows long, its older part is summarized, and the summary is kept here, day by day.")}</p></div>`;
}
