/** An error in place of the answer: what happened, what to do, and details on demand. */

import { boot } from "../boot.js";
import { html } from "../html.js";
import { t, translateServerText, translateWithoutAdvice } from "../i18n.js";
import { offeredModels } from "../state/store.js";
import { Icon } from "./icons.js";
import { Menu } from "./Menu.js";

/** Errors that an operator can fix in the admin panel. */
const OF_THE_SETUP = new Set([
  "auth",
  "authentication",
  "wrong_key",
  "not_found",
  "model_not_found",
  "unreachable",
  "connection",
]);

/**
 * Render an error. Without buttons, leave out the advice to press them.
 * @param {{error: import("../state/types.js").RunError|null, model: string|null,
 *   onRetry: ((model?: string) => void)|null, onContinue: (() => void)|null, isBusy: boolean}} props
 *   `model`: the one that failed; `onContinue`: given if text was kept
 */
export function ErrorCard({ error, model, onRetry, onContinue, isBusy }) {
  const others = offeredModels.value.filter(({ name }) => name !== model);
  const choices = others.map(({ name }) => ({ label: name, onSelect: () => onRetry?.(name) }));
  const canMend = boot.admin_url && error && OF_THE_SETUP.has(error.category);
  const say = onRetry || onContinue ? translateServerText : translateWithoutAdvice;
  return html`<div class="card is-bad" role="alert">
    <${Icon} name="warning" />
    <div class="card-body">
      <p>${say(error?.message || t("The answer failed. Your message is stored; try again."))}</p>
      ${(onRetry || onContinue || canMend) && html`<div class="card-actions">
        ${onContinue && html`<button type="button" class="button is-small" disabled=${isBusy} onClick=${onContinue}>${t("Continue")}</button>`}
        ${onRetry && html`<button type="button" class="button is-small" disabled=${isBusy} onClick=${() => onRetry()}><${Icon} name="retry" size=${16} />${t("Retry")}</button>`}
        ${onRetry && !isBusy && choices.length > 0 && html`<${Menu} label=${t("Change model")} className="button is-small" align="start" items=${choices} isNamedByText>${t("Change model")}<${Icon} name="down" size=${16} /><//>`}
        ${canMend && html`<a class="button is-small" href=${`${boot.admin_url}chatapp/modelconfig/`}>${t("Check the model")}</a>`}
      </div>`}
      ${error?.detail && html`<details class="card-details"><summary>${t("Details")}</summary><pre tabindex="0">${error.detail}</pre></details>`}
    </div>
  </div>`;
}
