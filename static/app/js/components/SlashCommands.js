/** Completion of commands above the composer, and their answers. Neither is part of the conversation. */

import { useLayoutEffect, useRef } from "preact/hooks";
import { errorText } from "../commands/conversations.js";
import { offered } from "../commands/slash.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { answerOfCommand, chosenCommand } from "../state/draft.js";
import { showToast } from "../state/store.js";
import { ForgetProposal } from "./ForgetProposal.js";
import { Icon } from "./icons.js";

/** @param {{complete: (text: string) => void}} props */
export function CommandMenu({ complete }) {
  const found = offered();
  return found.length > 0 && html`<${Options} found=${found} complete=${complete} />`;
}

/** @param {{found: ReturnType<typeof offered>, complete: (text: string) => void}} props */
function Options({ found, complete }) {
  const chosen = chosenCommand.value % found.length;
  const list = useRef(/** @type {HTMLElement|null} */ (null));
  useLayoutEffect(() => list.current?.children[chosen]?.scrollIntoView({ block: "nearest" }), [chosen]);
  return html`<ul ref=${list} class="commands" id="commands" role="listbox" tabindex="0" aria-label=${t("Commands")}>
    ${found.map(
      ({ name, usage, about, text }, index) => html`<li key=${name} id=${optionId(index)} role="option" aria-selected=${index === chosen}
        class=${index === chosen ? "is-chosen" : ""} onMouseDown=${(/** @type {Event} */ event) => event.preventDefault()} onClick=${() => complete(text ?? `${name} `)}>
        <code>${name} ${usage}</code><span>${about}</span></li>`,
    )}
  </ul>`;
}

/** @param {number} index */
const optionId = (index) => `command-${index}`;

/** Return the attributes with which the message box describes the menu to screen readers. */
export function attributesOfMenu() {
  const count = offered().length;
  return count > 0 && { "aria-controls": "commands", "aria-activedescendant": optionId(chosenCommand.value % count) };
}

export function CommandAnswer() {
  const answer = answerOfCommand.value;
  if (!answer || answer.isOutdated?.()) return null;
  return html`<section class="command-answer" role="status">
    <header><strong>${answer.title}</strong>
      <button type="button" class="icon-button is-small" aria-label=${t("Close")} onClick=${() => (answerOfCommand.value = null)}>
        <${Icon} name="close" size=${16} /></button></header>
    ${answer.text && html`<p>${answer.text}</p>`}
    ${answer.action && html`<button type="button" class="button is-small" onClick=${() => act(answer)}>${answer.action.name}</button>`}
    ${answer.rows && html`<dl>${answer.rows.map(([name, value], at) => html`<div><dt>${name}</dt><dd>${answer.links ? html`<a href=${answer.links[at]}>${value}</a>` : value}</dd></div>`)}</dl>`}
    ${answer.proposal && html`<${ForgetProposal} key=${answer.proposal.proposal_id} proposal=${answer.proposal} isAsking onCancel=${() => (answerOfCommand.value = null)} />`}
  </section>`;
}

/** @param {import("../commands/slash.js").CommandAnswer} answer */
async function act(answer) {
  answerOfCommand.value = null;
  try {
    await answer.action?.run();
  } catch (error) {
    showToast(errorText(error), "bad");
  }
}
