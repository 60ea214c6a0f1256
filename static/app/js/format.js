/** Formats numbers, dates and groups for the screen. Pure functions: `now` is an argument. */

import { locale, plural, t } from "./i18n.js";
import { lengthOf } from "./pieces.js";

/** @typedef {import("./state/types.js").Usage} Usage */
/** @typedef {import("./state/types.js").Conversation} Conversation */

/**
 * Format the usage of a finished answer. Tokens for summarising are already included in both numbers.
 * @param {Usage} usage
 */
export function formatDone(usage) {
  return t("{in} in / {out} out", { in: formatTokens(usage.input_tokens), out: formatTokens(usage.output_tokens) });
}

/** @param {Usage} usage */
export function explainDone(usage) {
  const parts = [plural(usage.input_tokens, "{n} token in", "{n} tokens in")];
  if (usage.cached_tokens) parts.push(t("of which {n} cached", { n: exact(usage.cached_tokens) }));
  if (usage.compaction_tokens) parts.push(t("of both, {n} for summarizing", { n: exact(usage.compaction_tokens) }));
  parts.push(plural(usage.output_tokens, "{n} token out", "{n} tokens out"));
  if (usage.cost) parts.push(t("cost {cost}", { cost: formatCost(usage.cost) }));
  return parts.join(" · ");
}

/** Format a count as 812, 41.2k, 128k or 1.0M. @param {number} tokens */
export function formatTokens(tokens) {
  if (tokens < 1000) return String(Math.round(tokens));
  // From this value on, rounding gives a million.
  if (tokens >= 999_500) return `${(tokens / 1_000_000).toFixed(1)}M`;
  const thousands = tokens / 1000;
  return `${thousands >= 100 || Number.isInteger(thousands) ? Math.round(thousands) : thousands.toFixed(1)}k`;
}

/** @param {number} value */
export const exact = (value) => value.toLocaleString(locale);

/** @param {number} cost in US dollars */
export const formatCost = (cost) => `$${cost < 0.01 ? cost.toPrecision(2) : cost.toFixed(2)}`;

/** @param {number} ms */
export const formatSeconds = (ms) => (ms < 1000 ? t("{n} ms", { n: Math.round(ms) }) : t("{n} s", { n: (ms / 1000).toFixed(1) }));

/** @param {number} bytes */
export function formatBytes(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  if (Math.round(bytes / 1024) < 1024) return `${Math.round(bytes / 1024)} KB`;
  return `${(bytes / 1024 ** 2).toFixed(1)} MB`;
}

const DAY_MS = 86_400_000;

/** @param {Date} date */
const startOfDay = (date) => new Date(date.getFullYear(), date.getMonth(), date.getDate());

/** @param {string} iso @param {Date} now */
function groupName(iso, now) {
  const date = new Date(iso);
  const days = Math.round((startOfDay(now).getTime() - startOfDay(date).getTime()) / DAY_MS);
  if (days <= 0) return t("Today");
  if (days === 1) return t("Yesterday");
  if (days <= 7) return t("Previous 7 days");
  if (days <= 30) return t("Previous 30 days");
  return date.toLocaleDateString(locale, { month: "long", year: "numeric" });
}

/**
 * Group conversations for the sidebar: pinned ones first, then by age.
 * @param {Conversation[]} conversations @param {Date} now
 * @returns {{name: string, items: Conversation[]}[]}
 */
export function groupByAge(conversations, now) {
  const byActivity = [...conversations].sort((a, b) => b.last_activity_at.localeCompare(a.last_activity_at));
  /** @type {Map<string, Conversation[]>} */
  const groups = new Map();
  const pinned = byActivity.filter((conversation) => conversation.pinned);
  if (pinned.length) groups.set(t("Pinned"), pinned);
  for (const conversation of byActivity.filter((one) => !one.pinned)) {
    const name = groupName(conversation.last_activity_at, now);
    groups.set(name, [...(groups.get(name) ?? []), conversation]);
  }
  return [...groups].map(([name, items]) => ({ name, items }));
}

const TOLD_BEFORE_MS = 7 * DAY_MS;

/**
 * Return whether the clean-up will remove the conversation within a week.
 * @param {Conversation} conversation @param {Date} now
 */
export const expiresSoon = ({ expires_at: at, pinned }, now) =>
  at !== null && !pinned && new Date(at).getTime() - now.getTime() < TOLD_BEFORE_MS;

/**
 * Return when the clean-up will remove an unused chat, and where to.
 * @param {Conversation} conversation @param {number} trashDays 0 if there is no trash
 */
export function describeEnd({ expires_at: at, temporary }, trashDays) {
  const date = formatDate(at ?? "");
  return trashDays && !temporary ? t("This chat moves to the trash on {date}.", { date }) : t("This chat will be deleted on {date}.", { date });
}

/** Truncate a text without splitting a surrogate pair. @param {string} text @param {number} most */
function cut(text, most) {
  const beginning = text.slice(0, most);
  return beginning.slice(0, lengthOf(beginning));
}

const HEADING_CHARS = 80;

/** Return the heading that a screen reader announces for a turn. @param {string} text */
export function beginningOf(text) {
  const line = text.trim().split("\n", 1)[0];
  return line.length > HEADING_CHARS ? `${cut(line, HEADING_CHARS)}…` : line || t("Attached files");
}

/** @param {string} iso */
export const formatShortDay = (iso) => new Date(iso).toLocaleDateString(locale, { day: "numeric", month: "short" });

/** @param {string} iso */
export const formatDate = (iso) =>
  new Date(iso).toLocaleDateString(locale, { day: "numeric", month: "long", year: "numeric" });

/** @param {string} iso */
export const formatMoment = (iso) => new Date(iso).toLocaleString(locale, { dateStyle: "medium", timeStyle: "short" });

/** Format a calendar day, which has no time zone: 2026-11-21 is that day everywhere. @param {string} day */
export const formatDay = (day) =>
  new Date(`${day}T12:00:00Z`).toLocaleDateString(locale, {
    weekday: "long",
    day: "numeric",
    month: "long",
    year: "numeric",
    timeZone: "UTC",
  });

/** @param {string} month `2026-11` */
export const formatMonth = (month) =>
  new Date(`${month}-15T12:00:00Z`).toLocaleDateString(locale, { month: "long", year: "numeric", timeZone: "UTC" });

const MONDAY = Date.UTC(2024, 0, 1);

/** Return the long and short names of the weekdays, from Monday on. */
export function weekdays() {
  const at = (/** @type {number} */ day, /** @type {"long"|"short"} */ weekday) =>
    new Date(MONDAY + day * DAY_MS).toLocaleDateString(locale, { weekday, timeZone: "UTC" });
  return Array.from({ length: 7 }, (_, day) => ({ name: at(day, "long"), short: at(day, "short") }));
}

/** Return Markdown as one line without its marks. @param {string} markdown */
export const plainText = (markdown) =>
  markdown
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/^\s*(?:[#>]+|[-*+]|```\w*)(?:\s+|$)/gm, "")
    .replace(/\*{1,3}|`{1,3}/g, "")
    .replace(/\s+/g, " ")
    .trim();

/** Return the length of the whole sentences that the text begins with, in UTF-16 units. @param {string} text */
export const endOfSentences = (text) => Math.max(...Array.from(".!?。！？\n", (sign) => text.lastIndexOf(sign))) + 1;

/** @type {Record<string, string>} */
const SPEAKERS = { user: t("You"), assistant: t("Assistant"), memory: t("Remembered") };

/** Split a recalled text, e.g. `user: words`, into its speaker and words. @param {string} preview */
export function quoted(preview) {
  const [, who = "", words = ""] = /^(\w+): ([^]*)$/.exec(preview) ?? [];
  return SPEAKERS[who] ? { who: SPEAKERS[who], words: plainText(words) } : { who: "", words: plainText(preview) };
}

/** @param {Date} now */
export function greeting(now) {
  const hour = now.getHours();
  if (hour < 5) return t("Good evening");
  if (hour < 12) return t("Good morning");
  return hour < 18 ? t("Good afternoon") : t("Good evening");
}

/**
 * Replace invisible and direction-changing characters by their code points, so that users see what they approve.
 * @param {string} text
 */
export function revealHidden(text) {
  return text.replace(/(?![\n\t])[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u{2800}\u{1d159}]/gu, (sign) => `\\u{${(sign.codePointAt(0) ?? 0).toString(16)}}`);
}

/** Indent JSON. Return anything else unchanged. @param {string} json */
export function prettyJson(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

const BRIEF_CHARS = 48;

/** Return the beginning of a text, short enough to name a thing within a sentence. @param {string} text */
export const brief = (text) => (text.length > BRIEF_CHARS ? `${cut(text, BRIEF_CHARS - 1).trimEnd()}…` : text);
