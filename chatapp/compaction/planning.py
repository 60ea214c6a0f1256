"""Plans which compaction is due, and what it would cover. Calls no model and writes nothing."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from agents.chat_models.usage import count_tools
from agents.requests.context import AssembledContext
from chatapp.compaction.models import Compaction
from chatapp.compaction.selectors import measure_span, turns_since_compaction, was_undone
from chatapp.context.assembly import LoadedContext, load_context
from chatapp.conversations.models import Conversation
from chatapp.operations import clock
from chatapp.operations.errors import NotFound
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import accessible_model, fast_model_of, model_of
from memory.errors import ContextError
from memory.tokens import text_message
from memory.types import Message
from memory.window.compaction import CompactionPlan, PlanInputs, plan_span

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """Deviations of a compaction from the policy.

    `at_once`: cover all but `keep_recent` messages, at any pressure. `by_user`: even if this summary was undone before.
    `is_final`: do not wait for more messages if the span is short.
    """

    at_once: bool = False
    by_user: bool = False
    is_final: bool = False
    keep_hint: str = ""
    strategy: str = ""
    keep_recent: int | None = None
    summary_max_tokens: int = 0


AUTOMATIC = CompactionOptions()
FINAL = CompactionOptions(is_final=True)
AT_ONCE = CompactionOptions(at_once=True)


def load_for_planning(conversation_id: UUID) -> LoadedContext | None:
    """Return the context after the last message; None if the conversation is gone."""
    rows = Conversation.objects.select_related(
        "user", "branch", "model__fast_model", "agent__model__fast_model"
    )
    conversation = rows.filter(pk=conversation_id).first()
    return load_end(conversation) if conversation else None


def load_end(conversation: Conversation) -> LoadedContext:
    assert conversation.branch is not None
    return load_context(
        conversation=conversation,
        branch=conversation.branch,
        before_position=conversation.next_position,
        question=text_message("user", "", kind="question"),
        config=model_of(conversation),
        now=clock.now(),
    )


def find_span(loaded: LoadedContext, options: CompactionOptions = AUTOMATIC) -> Compaction | None:
    """Return the compaction that is due, measured but unsaved; None if none is due."""
    rules, inputs = loaded.rules, loaded.inputs
    policy = rules.policy
    if options.keep_recent is not None:
        policy = policy.model_copy(update={"keep_recent": options.keep_recent})
    plan = plan_span(
        PlanInputs(
            messages=inputs.messages,
            checkpoint=inputs.checkpoint,
            policy=policy,
            budget=rules.budget,
            calibration=rules.calibration,
            system_tokens=inputs.fixed_tokens + count_tools(inputs.tools),
            question_tokens=0 if inputs.question.is_empty else inputs.question.tokens,
            left_out=inputs.left_out,
            turns_since_compaction=turns_since_compaction(loaded.conversation),
            manual=options.at_once,
            may_wait_for_more=not options.is_final,
        )
    )
    if plan is None or (not options.by_user and _was_undone(loaded, plan)):
        return None
    return _measured(loaded, plan, options)


def may_be_due(loaded: LoadedContext, said: Sequence[Message]) -> bool:
    """Return whether a compaction may be due once these messages follow, or something waits to be summarised. Only
    loaded values are used. If it returns False, `find_span` finds none."""
    rules, inputs = loaded.rules, loaded.inputs
    if rules.hooks_decide_compaction or not rules.policy.has_summary or rules.policy.is_inline:
        return False  # none of these summarises after an answer
    if loaded.conversation.summary_waits or inputs.left_out.count:
        return True
    after = PlanInputs(
        messages=(*inputs.messages, *said),
        checkpoint=inputs.checkpoint,
        policy=rules.policy,
        budget=rules.budget,
        calibration=rules.calibration,
        system_tokens=inputs.fixed_tokens + count_tools(inputs.tools),
    )
    return any(
        plan_span(replace(after, may_wait_for_more=may_wait_for_more)) for may_wait_for_more in (True, False)
    )


def find_emergency_span(loaded: LoadedContext, sent: AssembledContext) -> Compaction | None:
    """Return the compaction of the messages dropped after a provider refused the request; None if none were."""
    checkpoint, dropped = loaded.inputs.checkpoint, sent.view.dropped
    first = checkpoint.last_position + 1 if checkpoint else 0
    # Not all that the view lacks, which includes tool calls of turns that stay. Dropped pins may be in the checkpoint.
    last = dropped.last_position if dropped else None
    if last is None or last < first:
        return None
    messages = loaded.inputs.messages
    positions = [each.position for each in messages if each.position is not None and each.position >= first]
    covered = sum(1 for position in positions if position <= last)
    plan = CompactionPlan(
        first_position=first,
        last_position=last,
        message_count=covered + loaded.inputs.left_out.count,
        kept_count=len(positions) - covered,
        # `_measured` reads these from the database.
        span_tokens=0,
        tokens_before=0,
        trigger="hard",
    )
    return _measured(loaded, plan, AUTOMATIC)


def _was_undone(loaded: LoadedContext, plan: CompactionPlan) -> bool:
    return was_undone(
        loaded.branch,
        loaded.history.checkpoint_row,
        plan.last_position,
        is_needed=plan.trigger == "hard" or is_full(loaded),
    )


def is_full(loaded: LoadedContext) -> bool:
    """Return whether something has to leave before the next call."""
    try:
        return loaded.assemble().view.dropped is not None
    # Not even the question fits beside the parts that cannot leave.
    except ContextError:
        return True


def is_cooling(loaded: LoadedContext, run_id: UUID, *, has_answered: bool = False) -> bool:
    """Return whether the last compaction is too recent for another in this run. A turn without an answer does not
    count; a full context has no cooldown."""
    turns = turns_since_compaction(loaded.conversation, run_id)
    if turns is None:
        return False
    passed = turns if has_answered else turns - 1
    return passed < loaded.rules.policy.cooldown_turns and not is_full(loaded)


def _measured(loaded: LoadedContext, plan: CompactionPlan, options: CompactionOptions) -> Compaction:
    """Return the plan as an unsaved row, with the message count and the end of a long span from the database."""
    span = measure_span(loaded.branch, plan.first_position, plan.last_position)
    previous = loaded.history.checkpoint_row
    return Compaction(
        branch=span.branch,
        previous=previous,
        first_position=plan.first_position,
        last_position=span.last_position,
        message_count=span.message_count,
        # Messages after an early end are not covered yet.
        kept_count=plan.kept_count + (plan.message_count - span.message_count if not span.is_whole else 0),
        span_tokens=span.tokens,
        covered_tokens=span.tokens + (previous.covered_tokens if previous else 0),
        budget_tokens=loaded.rules.budget.input_tokens,
        tokens_before=(loaded.inputs.checkpoint.tokens if loaded.inputs.checkpoint else 0) + span.tokens,
        strategy=options.strategy or loaded.rules.policy.strategy,
        keep_hint=options.keep_hint,
        summary_max_tokens=options.summary_max_tokens,
        is_partial=not span.is_whole,
    )


def summary_model_of(loaded: LoadedContext) -> ModelConfig:
    """Return the policy's summary model, else the fast model of the answering model."""
    wanted = loaded.rules.policy.summary_model
    if wanted:
        try:
            return accessible_model(None, wanted)  # named by the policy, not chosen by the user
        except NotFound:
            log.warning(
                "The summary model %s does not exist or is switched off; using the fast model.", wanted
            )
    return fast_model_of(loaded.config)
