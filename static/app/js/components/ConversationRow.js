/** One conversation in the sidebar: its title, its state, and its menu. */

import { useLayoutEffect, useRef } from "preact/hooks";
import { boot } from "../boot.js";
import { shownIds } from "../bulk/commands.js";
import { select, selection, toggleSelected } from "../bulk/store.js";
import { archiveConversation, changeConversation } from "../commands/conversations.js";
import { goTo } from "../commands/navigation.js";
import { openMoveDialog } from "../folders/commands.js";
import { dragged } from "../folders/dragging.js";
import { describeEnd, expiresSoon, formatShortDay } from "../format.js";
import { html, memo } from "../html.js";
import { t } from "../i18n.js";
import { printWhole } from "../printing/keys.js";
import { changeUi, currentId } from "../state/store.js";
import { deleteConversation } from "../trash/commands.js";
import { Icon } from "./icons.js";
import { useInPlace } from "./inPlace.js";
import { Menu } from "./Menu.js";

/** @typedef {import("../state/types.js").Conversation} Conversation */

export const ConversationRow = memo(Row);

/** @param {{conversation: Conversation}} props */
function Row({ conversation }) {
  const { isOpen: isRenaming, opener, close } = useInPlace();
  const isOpen = currentId.value === conversation.id;
  const open = (/** @type {MouseEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    goTo(conversation.id);
  };
  if (isRenaming.value) {
    return html`<li class="row"><${TitleField} conversation=${conversation} onDone=${close} /></li>`;
  }
  const title = conversation.title || t("New chat");
  if (selection.value) {
    return html`<li class=${`row ${isOpen ? "is-open" : ""}`}><label class="row-link row-choice" title=${title}>
      <input type="checkbox" checked=${selection.value.has(conversation.id)} onClick=${(/** @type {MouseEvent} */ event) => toggleSelected(conversation.id, event.shiftKey ? shownIds() : [])} />
      <span class="row-title"><bdi>${title}</bdi></span></label></li>`;
  }
  return html`<li class=${`row ${isOpen ? "is-open" : ""}`}>
    <a ref=${opener} class="row-link" href=${`/c/${conversation.id}`} title=${title} onClick=${open} onDragStart=${dragged(conversation.id)}
      aria-current=${isOpen ? "page" : undefined} onDblClick=${() => (isRenaming.value = true)}>
      <span class="row-title"><bdi>${title}</bdi></span>
    </a>
    <${StateDot} conversation=${conversation} />
    <${Menu} label=${t("Options for {title}", { title })} title=${t("Options")} className="icon-button is-small row-menu"
      items=${rowActions(conversation, () => (isRenaming.value = true))}><${Icon} name="dots" size=${18} /><//>
  </li>`;
}

/** @param {{conversation: Conversation}} props */
function StateDot({ conversation }) {
  if (conversation.waiting_calls) return html`<span class="dot is-waiting" role="img" aria-label=${t("Needs your approval")} title=${t("Needs your approval")}></span>`;
  if (conversation.active_run) return html`<span class="dot is-busy" role="img" aria-label=${t("Answering")}></span>`;
  if (conversation.unread) return html`<span class="dot" role="img" aria-label=${t("New answer")}></span>`;
  if (conversation.expires_at && expiresSoon(conversation, new Date()))
    return html`<small class="row-date" title=${describeEnd(conversation, boot.trash_days)}>${formatShortDay(conversation.expires_at)}</small>`;
  if (conversation.pinned) return html`<span class="row-pin"><${Icon} name="pin" size=${14} /></span>`;
  return null;
}

/** @param {Conversation} conversation @param {() => void} rename @returns {import("./Menu.js").MenuItem[]} */
export function rowActions(conversation, rename) {
  const { id, pinned, archived, memory } = conversation;
  const isPaused = memory === "paused";
  const exportUrl = `/api/v1/conversations/${id}/export`;
  return [
    { label: t("Rename"), icon: "rename", onSelect: rename },
    { label: pinned ? t("Unpin") : t("Pin"), icon: "pin", onSelect: () => changeConversation(id, { pinned: !pinned }) },
    { label: t("Move to folder…"), icon: "inbox", onSelect: () => openMoveDialog(conversation) },
    {
      label: archived ? t("Unarchive") : t("Archive"),
      icon: "archive",
      onSelect: () => archiveConversation(id, !archived),
    },
    {
      label: isPaused ? t("Resume memory") : t("Pause memory"),
      icon: "memory",
      onSelect: () => changeConversation(id, { memory: isPaused ? "on" : "paused" }),
    },
    { label: t("Select"), icon: "check", onSelect: () => select([id]) },
    null,
    { label: t("Share…"), icon: "export", onSelect: () => changeUi({ dialog: { kind: "share", conversation } }) },
    { label: t("Print…"), icon: "file", onSelect: () => printWhole(conversation) },
    { label: t("Export as Markdown"), icon: "export", href: `${exportUrl}?format=markdown` },
    { label: t("Export as JSON"), icon: "export", href: `${exportUrl}?format=json` },
    null,
    { label: t("Delete"), icon: "trash", isDanger: true, onSelect: () => deleteConversation(conversation) },
  ];
}

/** @param {{conversation: Conversation, onDone: () => void}} props */
function TitleField({ conversation, onDone }) {
  const field = useRef(/** @type {HTMLInputElement|null} */ (null));
  useLayoutEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, []);
  const save = () => {
    const title = field.current?.value.trim();
    if (title && title !== conversation.title) changeConversation(conversation.id, { title });
    onDone();
  };
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    event.stopPropagation();
    // These keys belong to the input method while it composes.
    if (event.isComposing) return;
    if (event.key === "Enter") save();
    if (event.key === "Escape") onDone();
  };
  return html`<input ref=${field} class="row-field" aria-label=${t("Title")} maxlength="200" value=${conversation.title}
    onKeyDown=${onKeyDown} onBlur=${save} />`;
}
