"""Reads the input of a claimed compaction, and turns a summary into the values to store. Calls no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from uuid import UUID

from agents.background.summarise import SummaryResult
from agents.requests.context import tool_notes
from agents.types import TokenUsage
from chatapp.accounts.budgets.selectors import spender_of
from chatapp.accounts.budgets.values import Spender
from chatapp.compaction.models import Compaction
from chatapp.compaction.selectors import span_ends, span_messages
from chatapp.compaction.values import CompactionLease, FinishedSummary
from chatapp.context.policies import ContextRules, rules_for
from chatapp.context.tools.registry import tools_for
from chatapp.long_term.actions.tombstones import lift_requested
from chatapp.long_term.selectors.entries import corrected_texts, known_texts, recalled_texts
from chatapp.long_term.selectors.pauses import pauses_of, was_paused
from chatapp.long_term.selectors.tombstones import tombstones_of
from chatapp.long_term.superseding import KnownStatement, known_statements, superseding_places
from chatapp.operations.clock import in_zone
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import default_model, model_of
from chatapp.providers.usage import CallUsage, priced_call
from chatapp.recall.analysis import vocabulary
from memory.long_term.new_sentences import KnownSentences, Learned, learn
from memory.summaries.reminder import list_achieved, reminder_message, write_reminder
from memory.tokens import total_tokens
from memory.types import Message
from memory.window.cut import summary_limit
from memory.window.policy import ContextPolicy


@dataclass(frozen=True, slots=True)
class CompactionWork:
    """A claimed compaction, with everything its summary is made from."""

    row: Compaction
    lease: CompactionLease
    config: ModelConfig
    spender: Spender
    rules: ContextRules
    """The rules for the summary model, with its window and its calibration."""
    policy: ContextPolicy
    messages: Sequence[Message]
    first_message_id: UUID
    last_message_id: UUID
    was_paused: bool
    """Whether the summary covers messages that memory may not keep."""
    known: Sequence[KnownStatement] = ()
    """Statements in memory about which the summary model is asked, because the messages may supersede them."""

    @property
    def learnable_messages(self) -> Sequence[Message]:
        if not self.was_paused:
            return self.messages
        pauses, here = pauses_of(self.row.conversation.owner_id), self.row.conversation_id
        return [
            message
            for message in self.messages
            if message.created_at is None or not pauses.covers(here, message.created_at)
        ]

    @property
    def previous(self) -> str:
        return self.row.previous.summary if self.row.previous else ""

    def price_calls(self, usages: Sequence[TokenUsage]) -> list[CallUsage]:
        return [priced_call(self.config, usage, "compaction") for usage in usages]


def read_new_work(lease: CompactionLease) -> CompactionWork:
    """Return the work of a new compaction; unlike a rewrite, it may supersede known statements."""
    work = read_work(lease)
    if not (work.policy.behaviour.writes_summaries and work.row.conversation.uses_memory):
        return work
    return replace(work, known=known_statements(work.row, work.learnable_messages))


def read_work(lease: CompactionLease) -> CompactionWork:
    """Return a claimed compaction with all that its summary is made from."""
    row = Compaction.objects.select_related(
        "conversation__user",
        "conversation__model",
        "conversation__agent__model",
        "branch",
        "previous",
        "model",
    ).get(pk=lease.compaction_id)
    span = (row.branch, row.first_position, row.last_position)
    first_id, last_id = span_ends(*span)
    # The model may have been deleted since it was planned.
    config = row.model or default_model(row.conversation.owner_id)
    return CompactionWork(
        row=row,
        lease=lease,
        config=config,
        spender=spender_of(row.conversation.owner_id),
        rules=rules_for(config, asked_in=row.conversation),
        policy=_policy_of(row),
        messages=_dated_messages(row),
        first_message_id=first_id,
        last_message_id=last_id,
        was_paused=was_paused(row.conversation, row.last_position),
    )


def _dated_messages(row: Compaction) -> list[Message]:
    """Return the messages of the span, with times in the user's zone, because the summary names days."""
    zone = row.conversation.user.zone
    return [
        replace(message, created_at=in_zone(message.created_at, zone)) if message.created_at else message
        for message in span_messages(row.branch, row.first_position, row.last_position)
    ]


def _policy_of(row: Compaction) -> ContextPolicy:
    conversation = row.conversation
    rules = rules_for(model_of(conversation), conversation)
    asked = rules.policy.model_copy(
        update={"summary_max_tokens": row.summary_max_tokens or rules.policy.summary_max_tokens}
    )
    # The row's budget is in tokens as the model counts them, the policy in estimates.
    limit = summary_limit(asked, rules.calibration.invert(row.budget_tokens))
    return asked.model_copy(update={"strategy": row.strategy, "summary_max_tokens": limit})


def finished_summary(work: CompactionWork, done: SummaryResult) -> FinishedSummary:
    """Return what to store for a summary: with its reminder, memory entry and superseded statements."""
    reminder, reminder_tokens = _remind(work, done)
    learned = learned_from(work, done)
    return FinishedSummary(
        summary=done.text,
        summary_tokens=done.tokens,
        tokens_after=done.tokens + reminder_tokens,
        entry_text=learned.text,
        repeated_entries=learned.repeated,
        superseded=superseding_places(work.row, work.learnable_messages, work.known, done.superseded),
        first_message_id=work.first_message_id,
        last_message_id=work.last_message_id,
        calls=work.price_calls(done.usages),
        fallback_reason=done.fallback_reason or "",
        reminder=reminder,
    )


def _remind(work: CompactionWork, done: SummaryResult) -> tuple[str, int]:
    """Return (the reminder to send after the summary, its tokens), or ("", 0) if summary and reminder save nothing."""
    tools = tool_notes([tool.spec for tool in tools_for(work.row.conversation)])
    text = write_reminder(tools, list_achieved(work.messages))
    message = reminder_message(text)
    tokens = message.tokens if message else 0
    if done.tokens + tokens >= total_tokens(work.messages):
        return "", 0
    return text, tokens


def learned_from(work: CompactionWork, done: SummaryResult) -> Learned:
    """Return what is new in the summary, and new statements of the span that it does not contain word for word: without
    sentences that memory has or had before a correction, recalled texts, small talk and forgotten sentences.

    Return only the statements if no model wrote the summary, or it covers messages written while memory was paused. The
    entry of the same span does not count as known, so that a repeated job returns the same.
    """
    row, user_id = work.row, work.row.conversation.owner_id
    messages = work.learnable_messages
    said = [message for message in messages if message.role == "user"]
    # First, so that sentences the user asks to remember again are not filtered out as forgotten.
    lift_requested(user_id, [UUID(message.id) for message in said if message.id])
    own = [("", message.text) for message in said]
    texts = chain(
        known_texts(row, first_id=work.first_message_id, last_id=work.last_message_id),
        corrected_texts(row),
        recalled_texts(row, partial(KnownSentences, vocabulary, own)),
    )
    known = KnownSentences(vocabulary, texts)
    is_plain = not work.policy.behaviour.writes_summaries or work.was_paused or bool(done.fallback_reason)
    summary = "" if is_plain else done.text
    return learn(summary, messages, known=known, tombstones=tombstones_of(user_id), vocabulary=vocabulary)
