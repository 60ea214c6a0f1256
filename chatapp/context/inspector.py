"""Shows the request that the model would get for the next question, using the code that answers. Writes nothing."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from agents.requests.context import AssembledContext, Piece
from chatapp.accounts.models import User
from chatapp.compaction.planning import summary_model_of
from chatapp.compaction.schemas import compaction_shape
from chatapp.context.assembly import LoadedContext, load_context
from chatapp.context.policies import ContextRules, rules_for
from chatapp.context.recalled import FAILED_SENTENCE, Recalled, recall_turns
from chatapp.conversations.access import accessible_conversation
from chatapp.conversations.message_values import parts_to_json
from chatapp.conversations.models import Conversation
from chatapp.conversations.schemas.messages import content_of
from chatapp.operations import clock
from chatapp.operations.errors import InvalidInput, NotFound
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import accessible_model, model_of
from chatapp.runs.hooks import waiting_notes
from memory.errors import ContextError, PolicyError
from memory.tokens import text_message


def inspect_context(
    *,
    user: User,
    conversation_id: str,
    query: str,
    budget_tokens: int | None,
    model: str | None,
) -> dict[str, Any]:
    """Return the request that the model would get, piece by piece. Raise NotFound; InvalidInput if such a question
    could not be sent."""
    now = clock.now()
    conversation = accessible_conversation(user, conversation_id)
    if conversation.branch is None:
        raise NotFound()
    config = _model_for(conversation, model)
    try:
        loaded = load_context(
            conversation=conversation,
            branch=conversation.branch,
            before_position=conversation.next_position,
            question=text_message("user", query, kind="question"),
            config=config,
            now=now,
            rules=_limited(rules_for(config, conversation), budget_tokens),
        )
        loaded = loaded.with_notes(waiting_notes(loaded))
        if budget_tokens is not None and loaded.rules.budget.input_limit == budget_tokens:
            # Tool schemas belong to the reserve, which this request's own budget does not reduce.
            loaded = replace(loaded, inputs=replace(loaded.inputs, is_one_off=True, tools=()))
        context = loaded.assemble()
    except (ContextError, PolicyError) as error:
        raise InvalidInput(str(error)) from None
    recalled = recall_turns(loaded, context, now, asked_by=f"a look at conversation {conversation.pk}")
    return _describe(loaded, recalled.place_in(context), recalled)


def _model_for(conversation: Conversation, model: str | None) -> ModelConfig:
    if model:
        return accessible_model(conversation.owner_id, model)
    return model_of(conversation)


def _limited(rules: ContextRules, budget_tokens: int | None) -> ContextRules:
    if budget_tokens is None:
        return rules
    budget = replace(rules.budget, input_limit=budget_tokens)
    return replace(rules, resolved=replace(rules.resolved, budget=budget))


def _describe(loaded: LoadedContext, context: AssembledContext, recalled: Recalled) -> dict[str, Any]:
    view, parts = context.view, context.parts
    dropped = view.dropped
    row = loaded.history.checkpoint_row
    effective = loaded.rules.effective
    return {
        "model": loaded.config.name,
        "agent": loaded.conversation.agent.name if loaded.conversation.agent else None,
        "summary_model": summary_model_of(loaded).name,
        "messages": [_piece_shape(piece) for piece in context.pieces],
        "parts": asdict(parts),
        "total_tokens": parts.total,
        "budget_tokens": view.budget_tokens,
        "limit_tokens": context.limit_tokens,
        "context_size": loaded.rules.budget.context_size,
        "max_output_tokens": context.request.max_output_tokens,
        "pressure": round(parts.total / view.budget_tokens, 4),
        "is_estimate": True,
        "was_compacted": view.was_compacted,
        "original_count": view.original_count,
        "kept_count": view.compacted_count,
        "left_out": dropped.message_count if dropped else 0,
        "left_out_last_position": dropped.last_position if dropped else None,
        "left_out_extract": view.has_extract,
        "compaction": compaction_shape(row) if row else None,
        "recalled": [item.model_dump(mode="json") for item in recalled.items_in_view],
        "policy": {
            name: {"value": value, "from": effective.origins[name]}
            for name, value in effective.policy.model_dump(mode="json").items()
        },
        "warning": FAILED_SENTENCE if recalled.has_failed else loaded.rules.resolved.warning,
    }


def _piece_shape(piece: Piece) -> dict[str, Any]:
    return {
        "role": piece.message.role,
        "content": content_of(parts_to_json(piece.message.parts)),
        "source": piece.source,
        "tokens": piece.tokens,
        "message_id": piece.message.id,
    }
