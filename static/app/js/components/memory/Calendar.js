/** The days of a month. Days with entries can be opened. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { goToPlace, loadDaysOf } from "../../commands/memory.js";
import { formatDay, formatMonth, weekdays } from "../../format.js";
import { html } from "../../html.js";
import { plural, t } from "../../i18n.js";
import { monthOf, shiftMonth, weeksOf } from "../../state/calendar.js";
import { days, olderDaysCursor, place } from "../../state/memory.js";
import { Icon } from "../icons.js";

const MANY = 5;

export function Calendar() {
  const known = days.value;
  const opened = place.value.day ?? known?.[0]?.day ?? null;
  const month = useSignal("");
  useEffect(() => {
    if (opened) month.value = monthOf(opened);
  }, [opened]);
  useEffect(() => {
    if (month.value) loadDaysOf(month.value).catch(() => {});
  }, [month.value, known === null]);
  if (!known) return html`<div class="skeletons" aria-hidden="true"><i></i><i></i><i></i></div>`;
  if (!month.value) return null;
  const counts = new Map(known.map((one) => [one.day, one.entry_count]));
  const first = monthOf(known.at(-1)?.day ?? month.value);
  const last = monthOf(known[0]?.day ?? month.value);
  return html`<section class="calendar" aria-label=${t("Days")}>
    <header class="calendar-head">
      <${Step} to=${shiftMonth(month.value, -1)} label=${t("Earlier")} isTurned isOff=${month.value <= first && !olderDaysCursor.value} month=${month} />
      <h2 aria-live="polite">${formatMonth(month.value)}</h2>
      <${Step} to=${shiftMonth(month.value, 1)} label=${t("Later")} isOff=${month.value >= last} month=${month} />
    </header>
    <table>
      <thead><tr>${weekdays().map(({ name, short }) => html`<th scope="col" abbr=${name}>${short}</th>`)}</tr></thead>
      <tbody>${weeksOf(month.value).map(
        (week) => html`<tr>${week.map((day) => html`<td>${day && html`<${Cell} day=${day} count=${counts.get(day) ?? 0} isOpen=${day === opened} />`}</td>`)}</tr>`,
      )}</tbody>
    </table>
  </section>`;
}

/** @param {{to: string, label: string, isOff: boolean, isTurned?: boolean, month: {value: string}}} props */
function Step({ to, label, isOff, isTurned = false, month }) {
  return html`<button type="button" class=${`icon-button ${isTurned ? "is-turned" : ""}`} aria-label=${label} title=${label} disabled=${isOff}
    onClick=${() => (month.value = to)}><${Icon} name="right" size=${18} /></button>`;
}

/** @param {{day: string, count: number, isOpen: boolean}} props */
function Cell({ day, count, isOpen }) {
  const number = Number(day.slice(8));
  if (!count) return html`<span class="calendar-day">${number}</span>`;
  const entries = plural(count, "{n} entry", "{n} entries");
  return html`<button type="button" class=${`calendar-day has-entries ${count >= MANY ? "has-many" : ""}`} aria-current=${isOpen ? "date" : undefined}
    aria-label=${`${formatDay(day)}, ${entries}`} title=${entries} onClick=${() => goToPlace({ view: "days", day })}>${number}</button>`;
}
