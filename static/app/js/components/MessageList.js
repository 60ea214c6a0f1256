/** The messages in order, with dividers and memory notes in their places. */

import { fileUrl } from "../api.js";
import { html, memo } from "../html.js";
import { t } from "../i18n.js";
import { dividersOf } from "../state/context.js";
import { isAtNewest } from "../state/pages.js";
import { currentAgent } from "../state/store.js";
import { AssistantMessage } from "./AssistantMessage.js";
import { CompactDivider } from "./CompactDivider.js";
import { ForgetCard } from "./ForgetProposal.js";
import { AsWritten, Guard } from "./Guard.js";
import { MemoryLine } from "./MemoryLine.js";
import { UserMessage } from "./UserMessage.js";

/** @typedef {import("../state/types.js").Thread} Thread */
/** @typedef {import("../state/types.js").Compaction} Compaction */

/** @param {{thread: Thread}} props */
export function MessageList({ thread }) {
  // A window further up shows neither the last message nor messages that are being sent.
  const isAtEnd = isAtNewest(thread);
  const pendings = isAtEnd ? thread.pending : [];
  const answerId = isAtEnd ? thread.run?.message_id : undefined;
  if (!thread.ids.length && !pendings.length && currentAgent.value?.greeting)
    return html`<p class="agent-greeting">${currentAgent.value.greeting}</p>`;
  const places = new Map(thread.ids.map((id, at) => [id, at]));
  const placeOf = (/** @type {string|null} */ id) => places.get(id ?? "") ?? Infinity;
  const isUnseen = (/** @type {string} */ id) => thread.messages[id].isInjected && placeOf(id) > placeOf(thread.messages[id].parent);
  // Hide messages that were taken back unseen. Messages held after a stopped answer do not end its turn.
  const ids = thread.ids.filter((id) => !isUnseen(id) || !thread.messages[id].isForgotten);
  const dividers = placeDividers(thread, ids);
  const lastId = isAtEnd ? ids.findLast((id) => !isUnseen(id)) : undefined;
  const hasHeldMessages = lastId !== ids.at(-1);
  const waits = pendings.length > 0 || (answerId !== undefined && !thread.messages[answerId]);
  return html`
    ${ids.map(
      (id) => html`<${Slot} key=${id} message=${thread.messages[id]} divider=${dividers.get(id)} isLast=${id === lastId} hasHeldMessages=${id === lastId && hasHeldMessages}
        isRunning=${Boolean(thread.run)} mayEdit=${thread.messages[thread.messages[id].parent ?? ""]?.role === "user"} waiting=${isUnseen(id) ? (thread.run ? "queued" : "held") : null} />`,
    )}
    ${pendings.map(
      (pending) => html`<${UserMessage} key=${pending.clientId} isSending id=${pending.clientId}
      text=${pending.text} images=${pending.attached.filter((one) => one.isImage)}
      files=${pending.attached.filter((one) => !one.isImage)} />`,
    )}
    ${waits && html`<div class="message is-assistant"><p class="waiting" role="status" aria-label=${t("Waiting for the answer")}><i></i><i></i><i></i></p></div>`}`;
}

/**
 * Map the last message that each divider covers to the divider, once that message is loaded.
 * @param {Thread} thread @param {string[]} ids @returns {Map<string, Compaction>}
 */
function placeDividers(thread, ids) {
  const { messages } = thread;
  const places = new Map();
  for (const compaction of dividersOf(thread)) {
    const last = ids.findLast((id) => messages[id].position <= compaction.last_position);
    const goesOn = last === ids.at(-1) && !isAtNewest(thread);
    if (last && !goesOn) places.set(last, compaction);
  }
  return places;
}

const Slot = memo(
  function Slot(
    /** @type {{message: import("../state/types.js").ViewMessage, divider?: Compaction, isLast: boolean,
     *   hasHeldMessages: boolean, isRunning: boolean, mayEdit: boolean, waiting: "queued"|"held"|null}} `waiting`: the
     *   model has not seen it; it is queued for the next step of the answer, or held since that was stopped;
     *   `hasHeldMessages`: such messages follow */ props,
  ) {
    const { message, divider, isLast, hasHeldMessages, isRunning, mayEdit, waiting } = props;
    const instead = html`<article class=${`message is-${message.role}`} id=${`m-${message.id}`}><${AsWritten} text=${message.text} /></article>`;
    return html`<${Guard} instead=${instead}>
    ${
      message.role === "user" &&
      html`<${UserMessage} id=${message.id} text=${message.text} message=${message} isRunning=${isRunning} waiting=${waiting}
      images=${message.images.map((image) => ({ ...image, url: fileUrl(image.file_id), name: t("Attached image") }))}
      files=${message.files.map((file) => ({ url: fileUrl(file.file_id), name: file.name, sizeBytes: file.size_bytes }))} />`
    }
    ${message.role === "assistant" && html`<${AssistantMessage} message=${message} isLast=${isLast} hasHeldMessages=${hasHeldMessages} isRunning=${isRunning} mayEdit=${mayEdit} />`}
    <//>
    ${divider && html`<${CompactDivider} key=${divider.id} compaction=${divider} />`}
    ${message.forgetProposal && html`<${ForgetCard} key=${message.forgetProposal} id=${message.forgetProposal} />`}
    ${message.notes.map((note) => html`<${MemoryLine} key=${note.entryId} note=${note} />`)}`;
  },
);
