"""Compactions from plan to daily file. Planning is quick and calls no model; compacting is the worker's."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from agents.summarise import SummaryResult, extract_fallback, summarise
from agents.types import TokenUsage
from chatapp import clock, mapping, memory_files
from chatapp.actions.compactions import (
    CLEARED,
    CompactionLease,
    FinishedSummary,
    PlannedSpan,
    claim_compaction,
    clear_context,
    complete_compaction,
    fail_compaction,
    queue_compaction,
    renew_compaction,
)
from chatapp.actions.usage import CallUsage
from chatapp.chat_models import chat_model_for
from chatapp.contexts import LoadedContext, load_context
from chatapp.database import in_database
from chatapp.errors import Conflict, LeaseLost, NotFound
from chatapp.model_facts import price_call
from chatapp.models import Compaction, Conversation, ModelConfig, User
from chatapp.policies import rules_for
from chatapp.selectors.access import accessible_conversation
from chatapp.selectors.compactions import turns_since_compaction, was_undone
from chatapp.selectors.model_configs import accessible_model, default_model, fast_model_of
from chatapp.selectors.spans import measure_span, span_ends, span_messages
from memory.compaction import CompactionPlan
from memory.compaction import plan_compaction as plan_span
from memory.extractive import extract_facts
from memory.policy import ContextPolicy
from memory.tokens import estimate_text, text_message
from memory.types import Message

log = logging.getLogger(__name__)

HOLDER = f"{socket.gethostname()}:{os.getpid()}"
WORKERS_DIED = "workers died while they asked for it"
FACTS_OF_AN_ENTRY = 12
WAIT_STEP_S = 0.1
WAIT_LIMIT_S = 300.0


# --- Planning --------------------------------------------------------------------------------------------


def plan_compaction(conversation_id: UUID) -> Compaction | None:
    """Queues the compaction that is due, if one is."""
    rows = Conversation.objects.select_related("user", "branch", "model__fast_model")
    conversation = rows.filter(pk=conversation_id).first()
    return _plan(conversation) if conversation else None


def _plan(
    conversation: Conversation, *, keep_hint: str = "", strategy: str | None = None, manual: bool = False
) -> Compaction | None:
    loaded = _load(conversation)
    rules = loaded.rules
    if not manual and not rules.policy.has_summary:
        return None
    plan = plan_span(
        loaded.inputs.messages,
        loaded.inputs.checkpoint,
        rules.policy,
        rules.budget,
        calibration=rules.calibration,
        system_tokens=loaded.inputs.system.tokens,
        left_out=loaded.inputs.left_out,
        turns_since_compaction=turns_since_compaction(conversation),
        manual=manual,
    )
    if plan is None or (not manual and was_undone(loaded.branch, plan.first_position, plan.last_position)):
        return None
    span = _measured(loaded, plan, strategy or rules.policy.strategy, keep_hint)
    return queue_compaction(
        conversation_id=conversation.pk, span=span, model=_summary_model(loaded), now=clock.now()
    )


def _load(conversation: Conversation) -> LoadedContext:
    assert conversation.branch is not None
    model = conversation.model
    return load_context(
        conversation=conversation,
        branch=conversation.branch,
        before_position=conversation.next_position,
        question=text_message("user", "", kind="question"),
        config=model if model and model.enabled else default_model(),
        now=clock.now(),
    )


def _measured(loaded: LoadedContext, plan: CompactionPlan, strategy: str, keep_hint: str) -> PlannedSpan:
    """The plan with what only the database knows: how many messages lie in it, and where a long one ends."""
    span = measure_span(loaded.branch, plan.first_position, plan.last_position)
    return PlannedSpan(
        branch=loaded.branch,
        previous=loaded.history.checkpoint_row,
        first_position=span.first_position,
        last_position=span.last_position,
        message_count=span.message_count,
        kept_count=plan.kept_count + (plan.message_count - span.message_count if not span.is_whole else 0),
        span_tokens=span.tokens,
        budget_tokens=loaded.rules.budget.input_tokens,
        tokens_before=(loaded.inputs.checkpoint.tokens if loaded.inputs.checkpoint else 0) + span.tokens,
        strategy=strategy,
        keep_hint=keep_hint,
    )


def _summary_model(loaded: LoadedContext) -> ModelConfig:
    wanted = loaded.rules.policy.summary_model
    if wanted:
        try:
            return accessible_model(wanted)
        except NotFound:
            log.warning("The summary model %s is not there; the fast model takes its place.", wanted)
    return fast_model_of(loaded.config)


# --- Asked for by a user ---------------------------------------------------------------------------------


async def compact_now(
    *, user: User, conversation_id: str, keep: str | None, strategy: str | None, wait: bool
) -> dict[str, Any]:
    """Queues a compaction of all but the newest messages; with `wait`, returns when it has ended.

    Raises Conflict when one is under way, or there is too little to summarise.
    """
    row = await in_database(_queue_asked)(user, conversation_id, keep or "", strategy)
    deadline = asyncio.get_running_loop().time() + WAIT_LIMIT_S
    while wait and row.status in Compaction.ACTIVE and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(WAIT_STEP_S)
        await in_database(row.refresh_from_db)()
    return mapping.compaction_shape(row)


def _queue_asked(user: User, conversation_id: str, keep: str, strategy: str | None) -> Compaction:
    conversation = accessible_conversation(user, conversation_id)
    row = _plan(conversation, keep_hint=keep, strategy=strategy, manual=True)
    if row is not None:
        return row
    if conversation.compactions.filter(status__in=Compaction.ACTIVE).exists():
        raise Conflict("A summary of this conversation is being written already.", code="compaction_active")
    raise Conflict("There is too little here to summarise.", code="nothing_to_compact")


def clear_conversation(user: User, conversation_id: str) -> dict[str, Any]:
    """`/context clear`. Raises NotFound and Conflict."""
    conversation = accessible_conversation(user, conversation_id)
    config = conversation.model or default_model()
    row = clear_context(
        user=user,
        conversation_id=conversation_id,
        budget_tokens=rules_for(config, conversation).budget.input_tokens,
        tokens=estimate_text(CLEARED),
        now=clock.now(),
    )
    return mapping.compaction_shape(row)


# --- The worker's part -----------------------------------------------------------------------------------


def compact(compaction_id: UUID) -> None:
    """From a queued row to a checkpoint, a memory entry and a daily file. Safe to call twice, at any point."""
    lease = claim_compaction(compaction_id=compaction_id, holder=HOLDER, now=clock.now())
    if lease is None:
        return
    row = Compaction.objects.select_related(
        "conversation__user", "conversation__model", "branch", "previous", "model"
    ).get(pk=compaction_id)
    try:
        complete_compaction(lease=lease, result=_summarise_row(row, lease), now=clock.now())
    except LeaseLost as lost:
        log.warning("Compaction %s is no longer ours: %s", compaction_id, lost)
        return
    except Exception as error:
        log.exception("Compaction %s failed.", compaction_id)
        _give_up(lease, error)
        return
    memory_files.sweep_unwritten()
    plan_compaction(row.conversation_id)


def _give_up(lease: CompactionLease, error: Exception) -> None:
    try:
        fail_compaction(lease=lease, error=f"{type(error).__name__}: {error}", calls=(), now=clock.now())
    except LeaseLost as lost:
        log.warning("Compaction %s is no longer ours: %s", lease.compaction_id, lost)


def _summarise_row(row: Compaction, lease: CompactionLease) -> FinishedSummary:
    span = (row.branch, row.first_position, row.last_position)
    messages = list(span_messages(*span))
    config = row.model or default_model()
    policy = _policy_of(row)
    done = _ask(row, config, policy, messages, lease)
    first_id, last_id = span_ends(*span)
    return FinishedSummary(
        summary=done.text,
        summary_tokens=done.tokens,
        tokens_after=done.tokens,
        strategy=row.strategy,
        entry_text=_entry_text(done, messages),
        first_message_id=first_id,
        last_message_id=last_id,
        model=config,
        calls=[_priced(config, usage) for usage in done.usages],
        fallback_reason=done.fallback_reason or "",
    )


def _policy_of(row: Compaction) -> ContextPolicy:
    conversation = row.conversation
    policy = rules_for(conversation.model or default_model(), conversation).policy
    return policy.model_copy(update={"strategy": row.strategy})


def _ask(
    row: Compaction,
    config: ModelConfig,
    policy: ContextPolicy,
    messages: Sequence[Message],
    lease: CompactionLease,
) -> SummaryResult:
    previous = row.previous.summary if row.previous else ""
    if policy.strategy == "truncate":
        return extract_fallback(messages, previous=previous, policy=policy, reason="")
    if lease.is_last_attempt:
        return extract_fallback(messages, previous=previous, policy=policy, reason=WORKERS_DIED)
    rules = rules_for(config)

    async def stay_alive() -> None:
        await in_database(renew_compaction)(lease=lease, now=clock.now())

    return asyncio.run(
        summarise(
            chat_model_for(config),
            messages,
            previous=previous,
            policy=policy,
            window=rules.budget,
            calibration=rules.calibration,
            keep=row.keep_hint,
            before_call=stay_alive,
        )
    )


def _entry_text(done: SummaryResult, messages: Sequence[Message]) -> str:
    """The summary, and those facts of the span that it does not hold word for word."""
    missing = [fact for fact in extract_facts(messages, FACTS_OF_AN_ENTRY) if fact not in done.text]
    if not missing:
        return done.text
    return f"{done.text}\n\n" + "\n".join(f"- {fact}" for fact in missing)


def _priced(config: ModelConfig, usage: TokenUsage) -> CallUsage:
    return CallUsage(
        model=config,
        purpose="compaction",
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        cost=price_call(config, usage),
        exact=usage.exact,
    )
