/** An answer: reasoning, tools, text, how it ended, and actions. */

import { continueRun, regenerate } from "../commands/messages.js";
import { explainDone, formatDone } from "../format.js";
import { Thumbs } from "../feedback/Thumbs.js";
import { html, memo } from "../html.js";
import { t, translateServerText, translateWithoutAdvice } from "../i18n.js";
import { editedId } from "../state/draft.js";
import { ReadButton } from "../speech/ReadButton.js";
import { toolsOfAnswer } from "../state/tools.js";
import { CopyButton } from "./CodeBlock.js";
import { ErrorCard } from "./ErrorCard.js";
import { Icon } from "./icons.js";
import { MessageMenu, PinMark } from "./MessageMenu.js";
import { MessageEditor } from "./MessageEditor.js";
import { Markdown } from "./Markdown.js";
import { PlanGraph } from "./PlanGraph.js";
import { Reasoning } from "./Reasoning.js";
import { Recalled } from "./Recalled.js";
import { Siblings } from "./Siblings.js";
import { ToolGroup } from "./ToolGroup.js";

/** @typedef {import("../state/types.js").ViewMessage} ViewMessage */

const isOpenCall = (/** @type {import("../state/types.js").ToolCall} */ { state }) =>
  state === "running" || state === "waiting" || state === "requested";

/** @type {Record<string, string>} */
const NOTICE_ICONS = { hook: "hook", retrying: "retry", truncated: "fold", shrunk: "fold", summarised: "fold" };

export const AssistantMessage = memo(Message);

/**
 * Render an answer. `mayEdit`: it answers a loaded question; a continuation of another answer cannot be edited.
 * @param {{message: ViewMessage, isLast: boolean, hasHeldMessages: boolean, isRunning: boolean,
 *   mayEdit: boolean}} props
 */
function Message({ message, isLast, hasHeldMessages, isRunning, mayEdit }) {
  const isStreaming = message.status === "streaming";
  const tools = toolsOfAnswer(message.tools, message.plan);
  const isEdited = editedId.value === message.id;
  const isSilent =
    isStreaming && !message.text && !message.reasoning && !message.tools.some((tool) => isOpenCall(tool));
  return html`<article class=${`message is-assistant ${isLast ? "is-last" : ""}`} id=${`m-${message.id}`} aria-label=${t("Assistant")}
    aria-busy=${isStreaming} data-status=${message.status}>
    ${message.notices.map((notice) => html`<${NoticeLine} notice=${notice} />`)}
    ${message.reasoning && html`<${Reasoning} message=${message} />`}
    ${tools.length > 0 && html`<${ToolGroup} tools=${tools} runId=${message.run?.id ?? null} />`}
    ${message.plan.length > 0 && html`<${PlanGraph} steps=${message.plan} tools=${message.tools} />`}
    ${isEdited && html`<${MessageEditor} message=${message} />`}
    ${message.text && !isEdited && html`<${Markdown} text=${message.text} isFinal=${!isStreaming} />`}
    ${message.isEdited && !isEdited && html`<p class="outcome"><${Icon} name="rename" size=${14} />${t("Edited by you")}</p>`}
    ${message.isForgotten && !message.text && html`<p class="outcome">${t("This message was forgotten.")}</p>`}
    ${isSilent && html`<p class="waiting" role="status" aria-label=${t("Waiting for the answer")}><i></i><i></i><i></i></p>`}
    ${message.recalled.length > 0 && html`<${Recalled} items=${message.recalled} count=${message.recalledCount} />`}
    ${message.isPinned && html`<${PinMark} />`}
    ${!isStreaming && html`<${Outcome} message=${message} isLast=${isLast} hasHeldMessages=${hasHeldMessages} isRunning=${isRunning} />`}
    ${!isStreaming && !isEdited && html`<${Actions} message=${message} isLast=${isLast} isRunning=${isRunning} mayEdit=${mayEdit} />`}
  </article>`;
}

/** Render something that the run did by itself. @param {{notice: import("../state/types.js").Notice}} props */
function NoticeLine({ notice: { kind, text } }) {
  return html`<p class="notice-line" role="note" title=${translateServerText(text)}>
    <${Icon} name=${NOTICE_ICONS[kind] ?? "warning"} size=${16} /><span>${translateServerText(text)}</span></p>`;
}

/**
 * Render how the answer ended. Offer no retry of a stopped answer if held messages follow: they would stay in the old
 * branch.
 * @param {{message: ViewMessage, isLast: boolean, hasHeldMessages: boolean, isRunning: boolean}} props
 */
function Outcome({ message, isLast, hasHeldMessages, isRunning }) {
  const { status, run } = message;
  /** @param {string} [model] */
  const retry = (model) => regenerate(message.id, model);
  const goOn = () => run && continueRun(run.id);
  if (status === "failed")
    return html`<${ErrorCard} error=${run?.error ?? null} model=${message.model} onRetry=${isLast ? retry : null}
      onContinue=${isLast && run && message.text ? goOn : null} isBusy=${isRunning} />`;
  if (status !== "stopped" && status !== "interrupted" && status !== "cut") return null;
  const wasStopped = status === "stopped";
  const dot = html`<span aria-hidden="true"> · </span>`;
  const reason = (isLast ? translateServerText : translateWithoutAdvice)(run?.error?.message ?? "");
  const words = wasStopped ? t("Stopped") : t("Interrupted");
  return html`<p class=${wasStopped ? "outcome" : "outcome is-interrupted"} title=${reason}>
    ${!wasStopped && html`<${Icon} name="warning" size=${16} />`}${status === "cut" && reason ? reason : words}
    ${isLast && run && html`${dot}<button type="button" class="link" disabled=${isRunning} onClick=${goOn}>${t("Continue")}</button>`}
    ${isLast && !hasHeldMessages && html`${dot}<button type="button" class="link" disabled=${isRunning} onClick=${() => retry()}>${t("Retry")}</button>`}
  </p>`;
}

function Actions(
  /** @type {{message: ViewMessage, isLast: boolean, isRunning: boolean, mayEdit: boolean}} */
  { message, isLast, isRunning, mayEdit },
) {
  const { usage, status } = message;
  const isSpent = usage && usage.input_tokens + usage.output_tokens > 0;
  const hasRetry = isLast && ["failed", "interrupted", "cut"].includes(status);
  return html`<div class=${`actions ${message.siblings.length > 1 ? "has-siblings" : ""}`}>
    ${message.text && html`<${CopyButton} text=${message.text} label=${t("Copy")} />`}
    ${
      message.text &&
      !message.isForgotten &&
      mayEdit &&
      html`<button type="button" class="icon-button is-small" aria-label=${t("Edit")} title=${t("Edit")} disabled=${isRunning}
      onClick=${() => (editedId.value = message.id)}><${Icon} name="rename" size=${16} /></button>`
    }
    ${
      !hasRetry &&
      html`<button type="button" class="icon-button is-small" aria-label=${t("Regenerate")} title=${t("Regenerate")} disabled=${isRunning}
      onClick=${() => regenerate(message.id)}><${Icon} name="retry" size=${16} /></button>`
    }
    ${message.text && html`<${ReadButton} message=${message} />`}
    ${message.text && html`<${Thumbs} id=${message.id} />`}
    <${MessageMenu} message=${message} isLast=${isLast} isRunning=${isRunning} />
    <${Siblings} message=${message} isRunning=${isRunning} />
    ${isSpent && html`<span class="done-card" title=${explainDone(usage)}>${formatDone(usage)}</span>`}
    ${message.model && html`<span class="answer-model">${message.model}</span>`}
  </div>`;
}
