"""Requests of users: compact now, preview a compaction, start a new context."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings

from chatapp.accounts.models import User
from chatapp.compaction import schemas
from chatapp.compaction.actions.compactions import BEING_WRITTEN, clear_context
from chatapp.compaction.compactor import queue_due, wait_for
from chatapp.compaction.models import Compaction
from chatapp.compaction.planning import CompactionOptions, find_span, load_end
from chatapp.compaction.schemas import CompactRequest
from chatapp.compaction.selectors import active_compaction, span_messages
from chatapp.context.assembly import LoadedContext
from chatapp.context.policies import rules_for
from chatapp.conversations.access import accessible_conversation
from chatapp.operations import clock
from chatapp.operations.errors import Conflict
from chatapp.providers.selectors import model_of
from memory.strategies.registry import strategy_named
from memory.tokens import estimate_text

WAIT_LIMIT_S = 300.0
SWITCHED_OFF = "Compaction is switched off here."


async def compact_now(*, user: User, conversation_id: str, wanted: CompactRequest) -> dict[str, Any]:
    """Queue a compaction of all but the newest messages, and return it; with `wait`, after it has ended.

    Raise Conflict if one is active, there is too little to summarise, or compaction is switched off; NotFound if the
    conversation is deleted meanwhile.
    """
    row = await sync_to_async(_queue_asked)(user, conversation_id, wanted)
    if wanted.wait:
        await wait_for(row, WAIT_LIMIT_S)
    return schemas.compaction_shape(row)


def _queue_asked(user: User, conversation_id: str, wanted: CompactRequest) -> Compaction:
    conversation = accessible_conversation(user, conversation_id)
    loaded = load_end(conversation)
    row = queue_due(loaded, _options(loaded, wanted))
    if row is not None:
        return row
    if active_compaction(conversation.pk):
        raise Conflict(BEING_WRITTEN, code="compaction_active")
    raise Conflict("There is too little here to summarise.", code="nothing_to_compact")


def clear_conversation(user: User, conversation_id: str) -> dict[str, Any]:
    """Start a new context, as `/context clear` does, and return its checkpoint. Raise NotFound and Conflict."""
    conversation = accessible_conversation(user, conversation_id)
    config = model_of(conversation)
    row = clear_context(
        user=user,
        conversation_id=conversation_id,
        budget_tokens=rules_for(config, conversation).budget.input_tokens,
        now=clock.now(),
    )
    return schemas.compaction_shape(row)


def preview_compaction(*, user: User, conversation_id: str, wanted: CompactRequest) -> dict[str, Any]:
    """Return what `compact_now` would cover and keep, with a draft summary made without a model. Write nothing.

    Raise NotFound, and Conflict if there is too little to summarise or compaction is switched off.
    """
    loaded = load_end(accessible_conversation(user, conversation_id))
    planned = find_span(loaded, _options(loaded, wanted))
    if planned is None:
        raise Conflict("There is too little here to summarise.", code="nothing_to_compact")
    draft = _draft(loaded, planned)
    return {
        "preview": True,
        "strategy": planned.strategy,
        "first_position": planned.first_position,
        "last_position": planned.last_position,
        "message_count": planned.message_count,
        "kept_count": planned.kept_count,
        "tokens_before": planned.tokens_before,
        "tokens_after": estimate_text(draft),
        "summary": draft,
    }


def _draft(loaded: LoadedContext, planned: Compaction) -> str:
    previous = planned.previous.summary if planned.previous else ""
    messages = list(span_messages(planned.branch, planned.first_position, planned.last_position))
    longest = min(loaded.rules.policy.summary_max_tokens, planned.tokens_before // 2)
    return strategy_named(planned.strategy).draft(previous, messages, longest)


def _options(loaded: LoadedContext, wanted: CompactRequest) -> CompactionOptions:
    if not settings.ENABLE_COMPACTION:
        raise Conflict(SWITCHED_OFF, code="compaction_off")
    longest = min(wanted.summary_max_tokens or 0, loaded.rules.policy.summary_max_tokens)
    return CompactionOptions(
        at_once=True,
        by_user=True,
        keep_hint=wanted.keep or "",
        strategy=wanted.strategy or "",
        keep_recent=wanted.keep_recent,
        summary_max_tokens=longest,
    )
