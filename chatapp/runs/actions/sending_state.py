"""Locks the conversation that a message is sent to, and reads its state for storing the message in one statement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from uuid import UUID

from django.db import connection

from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.operations.caching.editions import Edition, configuration_edition, user_edition
from chatapp.operations.database.access import parse_id
from chatapp.operations.database.forgetting_counts import lock_forgetting_counts
from chatapp.operations.database.statements import as_key, columns_of, execute, read_models
from chatapp.operations.errors import NotFound
from chatapp.providers.models import ModelConfig

_STATE = """
SELECT {conversation}, {owner}, {branch}, {model}, {agent},
    EXISTS (SELECT 1 FROM chatapp_run
        WHERE conversation_id = conversation.id AND status IN ('queued', 'running')),
    EXISTS (SELECT 1 FROM chatapp_message WHERE user_id = owner.id AND client_id = %s),
    (SELECT id FROM chatapp_message WHERE branch_id = conversation.branch_id ORDER BY position DESC LIMIT 1),
    (SELECT kind FROM chatapp_message WHERE branch_id = conversation.branch_id ORDER BY position DESC LIMIT 1),
    (SELECT sum(count) FROM chatapp_forgettingcount WHERE key IN (conversation.user_id, conversation.shared_in)),
    {edition}, {user_edition}
FROM chatapp_conversation AS conversation
JOIN chatapp_user AS owner ON owner.id = conversation.user_id
LEFT JOIN chatapp_branch AS branch ON branch.id = conversation.branch_id
LEFT JOIN chatapp_modelconfig AS model ON model.id = conversation.model_id
LEFT JOIN chatapp_agent AS agent ON agent.id = conversation.agent_id
WHERE conversation.id = %s AND conversation.user_id = %s
"""
_MODELS = (Conversation, User, Branch, ModelConfig, Agent)
_SHARED = "SELECT shared_in FROM chatapp_conversation WHERE id = %s AND user_id = %s"
_LOCK = "SELECT id FROM chatapp_conversation WHERE id = %s AND user_id = %s FOR UPDATE"


@dataclass(frozen=True, slots=True)
class SendingState:
    """A locked conversation, with its user, branch, model and agent.

    `leaf_id` is the last message that the branch itself has; None if it has none of its own. `has_unseen`: a stopped
    answer left unanswered messages behind. `forgotten_count` is the result of `read_forgetting_count`, `edition` the
    argument of `one_edition`.
    """

    conversation: Conversation
    is_running: bool
    is_sent_before: bool
    leaf_id: UUID | None
    has_unseen: bool
    forgotten_count: int
    edition: Edition


def lock_for_sending(
    user: User, conversation_id: str | UUID, client_id: str | None, *, locks_forgetting_counts: bool = False
) -> SendingState:
    """Lock the conversation and read its state. `is_sent_before`: this `client_id` was used before. Raise NotFound.

    `locks_forgetting_counts`: lock the forgetting counts first, for a transaction that claims a run.
    """
    key = parse_id(conversation_id)
    if connection.features.has_select_for_update:  # lock first: a query that waited would read older rows
        # Lock the counts before the conversation, as everywhere, or this and a forgetting could deadlock.
        if locks_forgetting_counts and (shared := execute(_SHARED, key, user.pk).fetchone()) is not None:
            lock_forgetting_counts([user.pk, *([as_key(shared[0])] if shared[0] else [])])
        execute(_LOCK, key, user.pk)
    # Without `client_id`, look for an empty one, which no message has because it is refused.
    row = next(read_models(_MODELS, _statement(), client_id or "", key, user.pk), None)
    if row is None:
        raise NotFound()
    conversation, owner, branch, model, agent, is_running, is_sent_before, leaf_id, *others = row
    leaf_kind, forgotten, configuration, of_user = others
    conversation.user, conversation.branch = owner, branch
    conversation.model, conversation.agent = model, agent
    return SendingState(
        conversation,
        bool(is_running),
        bool(is_sent_before),
        as_key(leaf_id) if leaf_id else None,
        leaf_kind == Message.Kind.INJECTED,
        int(forgotten or 0),
        Edition(configuration, owner.pk, of_user),
    )


@cache
def _statement() -> str:
    names = ("conversation", "owner", "branch", "model", "agent")
    return _STATE.format(
        edition=configuration_edition(),
        user_edition=user_edition("owner.id"),
        **{name: columns_of(model, name) for name, model in zip(names, _MODELS, strict=True)},
    )
