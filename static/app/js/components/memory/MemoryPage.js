/** The memory page: the list of views and the calendar at the left, the chosen view at the right. */

import { useEffect, useRef } from "preact/hooks";
import { boot } from "../../boot.js";
import { goToPlace } from "../../commands/memory.js";
import { html } from "../../html.js";
import { t } from "../../i18n.js";
import { days, daysProblem, place, sharedMemories, waitingCount } from "../../state/memory.js";
import { ThemeSwitch } from "../AccountRow.js";
import { Icon, Mark } from "../icons.js";
import { MemoryOverlays } from "./MemoryOverlays.js";
import { Calendar } from "./Calendar.js";
import { ChartView } from "./ChartView.js";
import { DayView } from "./DayView.js";
import { ForgottenView } from "./ForgottenView.js";
import { MemorySwitches } from "./MemorySwitches.js";
import { ProfileView } from "./ProfileView.js";
import { ReviewView } from "./ReviewView.js";
import { SharedView } from "./SharedView.js";
import { SearchField, SearchResults } from "./MemorySearch.js";

/** @typedef {import("../../state/memory.js").View} View */

/** @type {{view: View, name: string, icon: string}[]} */
const LINKS = [
  { view: "days", name: t("Days"), icon: "calendar" },
  { view: "shared", name: t("Shared by agents"), icon: "spark" },
  { view: "review", name: t("To review"), icon: "inbox" },
  { view: "profile", name: t("Profile"), icon: "person" },
  { view: "chart", name: t("Statistics"), icon: "chart" },
  { view: "forgotten", name: t("Forgetting"), icon: "trash" },
];

export function MemoryPage() {
  return html`<div class="memory-page">
    <header class="memory-head">
      <a class="icon-button" href="/" aria-label=${t("Back to the chat")} title=${t("Back to the chat")}><span class="turned"><${Icon} name="right" /></span></a>
      <a class="wordmark" href="/"><${Mark} size=${22} /><span>${boot.product_name}</span></a>
      <span class="spacer"></span><${ThemeSwitch} />
    </header>
    <div class="memory-body">
      <aside class="memory-side">
        <h1>${t("Memory")}</h1>
        <${SearchField} />
        <nav aria-label=${t("Memory")}><ul class="memory-links">${LINKS.filter(isOffered).map((link) => html`<${ViewLink} key=${link.view} ...${link} />`)}</ul></nav>
        ${place.value.view === "days" && !place.value.search.q && html`<${Calendar} />`}
        <${MemorySwitches} />
      </aside>
      <main class="memory-main"><${Chosen} /></main>
    </div>
    <${MemoryOverlays} />
  </div>`;
}

/** Return whether to list a view. Most users have no agent with a shared memory. @param {{view: View}} link */
const isOffered = ({ view }) => view !== "shared" || sharedMemories.value.length > 0;

/** @param {{view: View, name: string, icon: string}} props */
function ViewLink({ view, name, icon }) {
  const link = useRef(/** @type {HTMLElement|null} */ (null));
  const isOpen = !place.value.search.q && place.value.view === view;
  // On a phone, the row of views is longer than the screen.
  useEffect(() => {
    if (isOpen) link.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [isOpen]);
  const open = (/** @type {MouseEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    goToPlace({ view });
  };
  return html`<li><a ref=${link} class=${`memory-link ${isOpen ? "is-open" : ""}`} href=${`/memory?view=${view}`} aria-current=${isOpen ? "page" : undefined}
    onClick=${open}><${Icon} name=${icon} size=${18} />${name}${view === "review" && waitingCount.value > 0 && html`<span class="count">${waitingCount.value}</span>`}</a></li>`;
}

function Chosen() {
  const { view, day, search } = place.value;
  if (search.q) return html`<${SearchResults} search=${search} />`;
  if (view === "chart") return html`<${ChartView} />`;
  if (view === "review") return html`<${ReviewView} />`;
  if (view === "shared") return html`<${SharedView} />`;
  if (view === "profile") return html`<${ProfileView} />`;
  if (view === "forgotten") return html`<${ForgottenView} />`;
  if (daysProblem.value) return html`<p class="card is-bad" role="alert">${daysProblem.value}</p>`;
  const shown = day ?? days.value?.[0]?.day ?? null;
  return html`<${DayView} key=${shown} day=${shown} />`;
}
