/** Thumbs below an answer. A bad rating may get a reason. */

import { Icon } from "../components/icons.js";
import { Menu } from "../components/Menu.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { rate, ratings } from "./commands.js";

const REASONS = [
  ["wrong", t("Not correct")],
  ["incomplete", t("Something is missing")],
  ["ignored", t("Did not do what I asked")],
  ["long", t("Too long")],
  ["unsafe", t("Harmful or inappropriate")],
  ["other", t("Something else")],
];

/** @param {{id: string}} props */
export function Thumbs({ id }) {
  const given = ratings.value[id];
  const thumb = (/** @type {"good"|"bad"} */ rating, /** @type {string} */ label) => {
    const isGiven = given?.rating === rating;
    const press = () => rate(id, isGiven ? null : { rating, reason: "" });
    return html`<button type="button" class="icon-button is-small" aria-label=${label} title=${label} aria-pressed=${isGiven}
      onClick=${press}><${Icon} name=${rating === "good" ? "thumbUp" : "thumbDown"} size=${16} /></button>`;
  };
  const reasons = REASONS.map(([reason, label]) => ({
    label,
    isChecked: given?.reason === reason,
    onSelect: () => rate(id, { rating: "bad", reason }),
  }));
  return html`${thumb("good", t("Good answer"))}${thumb("bad", t("Bad answer"))}
    ${given?.rating === "bad" && html`<${Menu} label=${t("Why?")} className="button is-small" align="start" items=${reasons}>${t("Why?")}<//>`}`;
}
