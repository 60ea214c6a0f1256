"""Stores the user's message, the answer's row and the run in one transaction, before any work begins."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from agents.events import Fact, MessageCreated
from chatapp.accounts.models import User
from chatapp.conversations.access import accessible_message
from chatapp.conversations.actions.conversations import title_from, updated_event
from chatapp.conversations.actions.messages import next_message
from chatapp.conversations.branches import lineage_below, visible_messages
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.conversations.schemas.messages import message_shape
from chatapp.files.models import Attachment
from chatapp.files.selectors import accessible_attachments
from chatapp.operations.caching.editions import one_edition
from chatapp.operations.database.access import parse_id
from chatapp.operations.database.statements import insert_rows
from chatapp.operations.errors import Conflict, InvalidInput, NotFound
from chatapp.operations.workers import jobs
from chatapp.providers.models import ModelConfig
from chatapp.realtime import event_log
from chatapp.runs.actions.claims import Claim, ClaimedRun, started_event
from chatapp.runs.actions.sending_state import SendingState, lock_for_sending
from chatapp.runs.actions.unseen_messages import release_unseen
from chatapp.runs.models import Run
from memory.long_term.memory_requests import read_forget_request

WITH_OPTIONS = "options:"
"""Prefix of hashes that include mode and model. Hashes stored by an earlier version cover only content and place, and
must still match requests repeated after the upgrade."""


@dataclass(frozen=True, slots=True)
class NewMessage:
    """What a user sends. `client_id` makes it idempotent; with `parent_id` None it continues at the end.

    `follows_id` is the message it follows if one, such as a prompt, was stored after `parent_id` for it; a repeated
    request does not know that one. `replaces_id` names the message that it edits: it takes its place, in a new branch.
    `mode` is how to answer it; empty: as the conversation says.
    """

    text: str
    attachment_ids: Sequence[str] = ()
    client_id: str | None = None
    parent_id: str | None = None
    follows_id: str | None = None
    replaces_id: str | None = None
    mode: str = ""

    def request_hash(self, conversation_id: str, model: ModelConfig | None) -> str:
        chosen = [self.mode, str(model.pk) if model else None]
        return WITH_OPTIONS + _hash([*self._said(conversation_id), *chosen])[: -len(WITH_OPTIONS)]

    def is_same(self, stored_hash: str, conversation_id: str, model: ModelConfig | None) -> bool:
        """Return whether the hash was stored for this same request."""
        if stored_hash.startswith(WITH_OPTIONS):
            return stored_hash == self.request_hash(conversation_id, model)
        return stored_hash == _hash(self._said(conversation_id))

    def _said(self, conversation_id: str) -> list[Any]:
        return [conversation_id, self.text, list(self.attachment_ids), self.parent_id, self.replaces_id]


def _hash(values: list[Any]) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was accepted. `message_id` is the user's message, `answer_id` the row that the answer is written to."""

    conversation_id: str
    message_id: str
    run_id: str
    answer_id: str
    seq: int
    is_new: bool = True
    is_injected: bool = False
    """Whether it was sent into an active run; then it has no run of its own."""

    @classmethod
    def of(cls, run: Run, message_id: UUID | None, seq: int, **flags: bool) -> Receipt:
        """Return the receipt of a message that the run answers or continues."""
        return cls(str(run.conversation_id), str(message_id), str(run.pk), str(run.answer_id), seq, **flags)


def send_message(
    *,
    user: User,
    conversation_id: str,
    new: NewMessage,
    model: ModelConfig | None,
    now: datetime,
    claim: Claim | None = None,
) -> Receipt:
    """Store a message and queue the run that answers it or, with `claim`, start it.

    Raise NotFound (also if the message with this key was deleted), Conflict (a run is active), InvalidInput (the key
    was used for something else).
    """
    try:
        with transaction.atomic():
            return _send(user, conversation_id, new, model, now, claim)
    except IntegrityError:
        # A concurrent request with this key, through another conversation or process, came first.
        receipt = find_receipt(user, conversation_id, new, model)
        if receipt is None:
            raise
        return receipt


def _send(
    user: User,
    conversation_id: str,
    new: NewMessage,
    model: ModelConfig | None,
    now: datetime,
    claim: Claim | None,
) -> Receipt:
    state = lock_for_sending(user, conversation_id, new.client_id, locks_forgetting_counts=claim is not None)
    conversation = state.conversation
    # Check it before anything is refused: a repeated request gets its receipt, even while its answer is being written.
    if state.is_sent_before:
        sent_before = find_receipt(user, str(conversation.pk), new, model)
        if sent_before is not None:
            return sent_before
    if state.is_running:
        raise run_active()
    # Only a message at the end also sends the messages that a stopped answer left waiting there.
    if state.has_unseen and conversation.branch is not None and _is_at_end(state, new):
        release_unseen(conversation, conversation.branch, now)
    parent_id, branch = _end_of(state, user, new)
    attachments = accessible_attachments(user, list(new.attachment_ids)) if new.attachment_ids else []
    question = next_message(
        conversation,
        branch_id=branch.pk,
        role=Message.Role.USER,
        parent_id=parent_id,
        parts=message_parts(new.text, attachments),
        now=now,
        client_id=new.client_id,
        request_hash=new.request_hash(str(conversation.pk), model) if new.client_id is not None else "",
    )
    if not conversation.title:
        conversation.title = title_from(new.text) or _title_of(attachments[0])
    if model is not None:
        conversation.model = model
    if read_forget_request(new.text) is not None:
        jobs.wake_worker("chatapp.forgetting.tasks.propose_forgetting", str(question.pk))
    # The number of `message.created`, where a stream of the answer begins.
    seq = conversation.last_seq + 1
    with one_edition(state.edition):
        run = queue_run(
            conversation,
            branch=branch,
            question=question,
            after=question,
            now=now,
            mode=new.mode,
            is_asked_now=True,
            claim=claim,
            state=state,
        )
    if attachments:
        # The message is stored only now: `queue_run` inserts it with its answer.
        question.attachments.set(attachments)
    return Receipt.of(run, question.pk, seq)


def find_receipt(
    user: User, conversation_id: str, new: NewMessage, model: ModelConfig | None = None
) -> Receipt | None:
    """Return the receipt of the message sent with this key before, if any. Raise NotFound, InvalidInput."""
    if new.client_id is None:
        return None
    message = (
        Message.objects.filter(user=user, client_id=new.client_id).select_related("conversation").first()
    )
    if message is None:
        return None
    if message.conversation.user_id is None:  # it is being deleted
        Message.objects.filter(pk=message.pk).update(client_id=None)
        return None
    if message.forgotten_at is not None and not message.request_hash:
        raise NotFound("The message sent with this client_id or Idempotency-Key was deleted.")
    if not new.is_same(message.request_hash, conversation_id, model):
        raise InvalidInput(
            "This client_id or Idempotency-Key was already used for another message.",
            code="idempotency_mismatch",
        )
    run = _answering_run(message)
    is_injected = run is None and message.kind == Message.Kind.INJECTED
    if is_injected:
        run = Run.objects.filter(answer=message.parent).first()
    created = message.conversation.events.filter(
        type="message.created", payload__message__id=str(message.pk)
    ).first()
    if run is None or created is None:
        return None
    return Receipt.of(run, message.pk, created.seq, is_new=False, is_injected=is_injected)


def _is_at_end(state: SendingState, new: NewMessage) -> bool:
    """Return whether the message follows the last one shown."""
    if new.replaces_id is not None:
        return False
    parent_id = new.follows_id or new.parent_id
    return parent_id is None or parse_id(parent_id) == state.leaf_id


def _answering_run(message: Message) -> Run | None:
    """Return the first run that answers a message, alone or together with others that waited behind the same answer, of
    which the last is the run's question. None while the message waits, and if it was sent into a run."""
    asked = message if message.kind != Message.Kind.INJECTED else None
    while asked is not None:
        # Take the first: later runs regenerate its answer.
        run = Run.objects.filter(question=asked).order_by("created_at", "pk").first()
        if run is not None:
            return run
        sent_after = Message.objects.filter(parent=asked, role=Message.Role.USER)
        asked = sent_after.order_by("position").first()
    return None


def _end_of(state: SendingState, user: User, new: NewMessage) -> tuple[UUID | None, Branch]:
    """Return (id of the message that the new one follows, branch of the new one)."""
    conversation = state.conversation
    branch = conversation.branch
    is_at_end = new.parent_id is None and new.replaces_id is None
    # A branch without messages of its own ends with an ancestor's message, which is looked up below.
    if branch is not None and is_at_end and (state.leaf_id is not None or not branch.lineage):
        return state.leaf_id, branch
    parent = _parent_of(user, conversation, new)
    return parent.pk if parent else None, _branch_after(conversation, parent)


def _parent_of(user: User, conversation: Conversation, new: NewMessage) -> Message | None:
    if new.replaces_id is not None:
        replaced = accessible_message(user, str(conversation.pk), new.replaces_id)
        if replaced.role != Message.Role.USER:
            raise InvalidInput("Only your own messages can be edited.")
        return _message_before(replaced)
    if (parent_id := new.follows_id or new.parent_id) is not None:
        return accessible_message(user, str(conversation.pk), parent_id)
    return leaf_of(conversation)


def _message_before(message: Message) -> Message | None:
    """Return the message that a user's message follows. A message sent into an answer stands before its parent, the
    answer: it follows the last message shown before it that is not a tool call or result of that answer."""
    answer = message.parent
    if answer is None or answer.position < message.position:
        return answer
    shown = visible_messages(message.branch).filter(position__lt=message.position)
    calls = shown.filter(parent=answer).exclude(role=Message.Role.USER)
    return shown.exclude(pk__in=calls.values("pk")).order_by("-position").first()


def leaf_of(conversation: Conversation) -> Message | None:
    """Return the last message that is shown."""
    assert conversation.branch is not None
    return visible_messages(conversation.branch).order_by("-position").first()


def _branch_after(conversation: Conversation, parent: Message | None) -> Branch:
    """Return the branch that continues after `parent`: the current one at its end, else a new one."""
    assert conversation.branch is not None
    if parent == leaf_of(conversation):
        return conversation.branch
    lineage = lineage_below(parent) if parent else []
    return Branch.objects.create(conversation=conversation, lineage=lineage)


def message_parts(text: str, attachments: Sequence[Attachment]) -> list[dict[str, Any]]:
    attached = [_attached_part(row) for row in attachments]
    if not text.strip() and not attached:
        details = [{"field": "content", "message": "is empty"}]
        raise InvalidInput("The message is empty.", details=details)
    return [*attached, {"type": "text", "text": text}] if text else attached


def _title_of(attachment: Attachment) -> str:
    return "Image" if attachment.is_image else title_from(attachment.name)


def _attached_part(row: Attachment) -> dict[str, Any]:
    part = {"file_id": str(row.pk), "mime_type": row.mime_type}
    if row.is_image:
        return {"type": "image", **part, "width": row.width, "height": row.height}
    return {"type": "file", **part, "name": row.name, "size_bytes": row.size_bytes}


def queue_run(
    conversation: Conversation,
    *,
    branch: Branch,
    question: Message | None,
    after: Message,
    now: datetime,
    continues: Message | None = None,
    mode: str = "",
    is_asked_now: bool = False,
    claim: Claim | None = None,
    state: SendingState | None = None,
) -> Run:
    """Store the answer's row after `after`, and return the run that will write it, already running if it was claimed.

    `is_asked_now`: store the question, too. Only a run with a `state` is claimed.
    """
    answer = next_message(
        conversation,
        branch_id=branch.pk,
        role=Message.Role.ASSISTANT,
        parent_id=after.pk,
        parts=[],
        status=Message.Status.STREAMING,
        now=now,
    )
    # Set, so that the answer can be prepared from these rows without a query.
    answer.branch = branch
    run = Run(
        conversation=conversation,
        user_id=conversation.owner_id,
        question=question,
        answer=answer,
        continues=continues,
        model=conversation.model,
        mode=mode,
        created_at=now,
    )
    conversation.branch = branch
    conversation.last_activity_at = now
    is_claimed = claim is not None and claim.take(run, now)
    insert_rows([question, answer] if question is not None and is_asked_now else [answer])
    insert_rows([run])
    facts: list[tuple[Fact, Run | None]] = [(updated_event(conversation, now, run), None)]
    if question is not None and is_asked_now:
        facts.insert(0, (_created_event(conversation, question, now), None))
    if is_claimed:
        facts.append((started_event(run, now), run))
    event_log.append_all(conversation, facts, ["branch", "title", "model", "last_activity_at"])
    if claim is not None and state is not None and is_claimed:
        claimed = ClaimedRun(run, state.forgotten_count, state.edition)
        # Registered after the events, so that their readers hear of the run before its first word.
        transaction.on_commit(partial(claim.begin, claimed))
    return run


def _created_event(conversation: Conversation, question: Message, now: datetime) -> MessageCreated:
    return MessageCreated(conversation_id=str(conversation.pk), at=now, message=message_shape(question))


def refuse_while_running(conversation: Conversation) -> None:
    if Run.active().filter(conversation=conversation).exists():
        raise run_active()


def run_active() -> Conflict:
    return Conflict("An answer is still being written here. Stop it or wait for its end.", code="run_active")
