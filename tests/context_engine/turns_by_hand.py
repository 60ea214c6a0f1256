"""Turns made by the service's own actions, without a model: their requests and the texts recalled for them."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from agents.chat_models.wire import write_messages
from agents.requests.context import AssembledContext
from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.context.recalled import Recalled
from chatapp.conversations.actions.imports import ImportedMessage, import_conversation
from chatapp.conversations.models import Conversation, Message
from chatapp.operations import clock
from chatapp.providers.actions import ensure_first_model
from chatapp.recall.actions.indexing import index_conversation
from chatapp.recall.actions.sources import recalled_rows
from chatapp.runs.actions.endings import Outcome, finish_run
from chatapp.runs.actions.requests import record_first_request
from chatapp.runs.actions.runs import PartialAnswer, claim_run
from chatapp.runs.actions.sending import NewMessage, send_message
from chatapp.runs.run_context import assemble_and_recall, describe_run
from tests.memory_store.rows import finished_compaction

ANSWER = "Noted."


@dataclass(frozen=True)
class Turn:
    """A finished turn."""

    run_id: UUID
    question: Message
    answer: Message
    context: AssembledContext
    recalled: Recalled

    @property
    def request(self) -> str:
        return str(write_messages(self.context.messages))[:-1]

    @property
    def recalled_texts(self) -> list[str]:
        """The texts recalled for this question alone."""
        return [turn.text for turn in self.recalled.turns]

    @property
    def in_view(self) -> str:
        """All recalled text in the request."""
        return "\n".join(message.text for message in self.context.messages if message.kind == "recall")


def import_notes(user: User, *texts: str, policy: dict[str, object] | None = None) -> Conversation:
    """Return an indexed conversation of these texts, alternating between user and assistant."""
    ensure_first_model()
    roles = ("user", "assistant")
    notes = [ImportedMessage(roles[number % 2], text) for number, text in enumerate(texts)]
    conversation = import_conversation(user=user, messages=notes, now=clock.now())
    if policy:
        Conversation.objects.filter(pk=conversation.pk).update(context_policy=policy)
        conversation.refresh_from_db()
    index_conversation(conversation.pk)
    return conversation


def compact_by_hand(conversation: Conversation, upto: int) -> Compaction:
    """Store a compaction as if a summary of all messages up to this position had just been written."""
    row = finished_compaction(conversation, upto, summary="The order is A-17.")
    row.first_position, row.message_count, row.budget_tokens = 0, upto + 1, 8_000
    row.finished_at = clock.now()
    row.save()
    return row


def ask(user: User, conversation: Conversation, text: str, **sent: str) -> Turn:
    new = NewMessage(text=text, **sent)  # type: ignore[arg-type]
    receipt = send_message(
        user=user, conversation_id=str(conversation.pk), new=new, model=None, now=clock.now()
    )
    run_id = UUID(receipt.run_id)
    loaded = describe_run(run_id).context
    assert loaded is not None
    lease = claim_run(run_id=run_id, holder="test", model_name="none", now=clock.now())
    assert lease is not None
    context, recalled = assemble_and_recall(loaded, run_id)
    rows = list(recalled_rows(run_id, recalled.turns, starts_anew=recalled.starts_anew))
    record_first_request(lease=lease, request=None, facts=(), recalled=rows, now=clock.now())
    finish_run(
        lease=lease, outcome=Outcome(status="complete", answer=PartialAnswer(lease, ANSWER)), now=clock.now()
    )
    index_conversation(conversation.pk)
    question, answer = (Message.objects.get(pk=raw) for raw in (receipt.message_id, receipt.answer_id))
    return Turn(run_id, question, answer, context, recalled)
