/** Translates every sentence of the screen. Fetches the catalogue of another language before anything is drawn. */

/**
 * A translated sentence, or one for each plural category.
 * @typedef {string|Partial<Record<Intl.LDMLPluralRule, string>>} Translation
 */
/** @typedef {Record<string, string|number>} Values */

export const language = globalThis.document?.documentElement.lang || "en";

/** The locale of dates and numbers: the browser's own region if it has the language of the page. */
export const locale = localeOf(language, globalThis.document ? navigator.languages : []);

/**
 * Return the first valid tag of the language. Some browsers report "en-US@posix", which Intl rejects.
 * @param {string} language @param {readonly string[]} tags
 */
export function localeOf(language, tags) {
  return tags.find((tag) => isTag(tag) && tag.split("-")[0] === language.split("-")[0]) ?? language;
}

/** @param {string} tag */
function isTag(tag) {
  try {
    return Intl.getCanonicalLocales(tag).length > 0;
  } catch {
    return false;
  }
}

const chinese = language.startsWith("zh") ? await import("./i18n/zh.js") : null;
/** Translations by their English sentence. @type {Record<string, Translation>} */
const catalogue = chinese?.sentences ?? {};
/** Translations of the server's sentences, by pattern. @type {[RegExp, string][]} */
const said = Object.entries(chinese?.serverSentences ?? {}).map(([english, translated]) => [patternOf(english), translated]);
/** Translations of errors without their advice: only the part before the semicolon. @type {Map<string, string>} */
const firstHalves = new Map(Object.entries(chinese?.serverSentences ?? {}).map(([english, translated]) => [english.split(";")[0], translated.split("；")[0]]));

/** @param {string} english with `{}` for each value that the server fills in */
function patternOf(english) {
  const parts = english.split("{}").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join("(.+?)")}$`, "is");
}

/**
 * Translate a sentence of the server. An unknown sentence stays in English.
 * @param {string} sentence @returns {string}
 */
export function translateServerText(sentence) {
  for (const [pattern, translated] of said) {
    const found = pattern.exec(sentence);
    if (found) return translated.replace(/\{(\d)\}/g, (_, at) => translateServerText(found[Number(at) + 1]));
  }
  return firstHalves.get(sentence) ?? sentence;
}

/** Translate an error without the advice that follows its semicolon. @param {string} sentence */
export function translateWithoutAdvice(sentence) {
  const whole = translateServerText(sentence);
  const end = whole.search(/[;；]/);
  return end < 0 ? whole : `${whole.slice(0, end)}${whole[end] === ";" ? "." : "。"}`;
}

const rules = new Intl.PluralRules(locale);
const numbers = new Intl.NumberFormat(locale);

/** Translate a sentence. @param {string} sentence @param {Values} [values] fill `{name}` */
export function t(sentence, values = {}) {
  const found = catalogue[sentence] ?? sentence;
  return fill(typeof found === "string" ? found : (found.other ?? sentence), values);
}

/**
 * Translate a sentence with a number, which fills `{n}`. The catalogue lists it under `other`.
 * @param {number} n @param {string} one @param {string} other @param {Values} [values] fill `{name}`
 */
export function plural(n, one, other, values = {}) {
  const category = rules.select(n);
  const found = catalogue[other] ?? { one, other };
  return fill(typeof found === "string" ? found : (found[category] ?? found.other ?? other), { n, ...values });
}

/** @param {string} sentence @param {Values} values */
const fill = (sentence, values) =>
  sentence.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? written(values[name]) : whole));

/** @param {string|number} value */
const written = (value) => (typeof value === "number" ? numbers.format(value) : value);
