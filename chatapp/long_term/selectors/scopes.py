"""Reads shared memories of agents: which conversation reads and adds to which, and their entries.

A conversation started in a scope never reads its user's private memory, even if the scope is closed later, so that
nothing private can get into the scope. From elsewhere, it only reads what the scope shares while it is open.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet

from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.agent_presets.selectors import usable_agent, visible_agents
from chatapp.conversations.models import Conversation
from chatapp.conversations.selectors.conversations import scope_for
from chatapp.long_term.models import MemoryEntry
from chatapp.long_term.selectors.entries import kept_entries, withdrawn_entries
from chatapp.long_term.selectors.pauses import is_paused
from chatapp.operations.database.access import parse_id
from chatapp.operations.database.statements import as_key, execute
from chatapp.operations.errors import NotFound


def open_scope(conversation: Conversation) -> UUID | None:
    """Return the id of the agent whose shared memory this conversation reads and adds to; None if there is none, it is
    closed, or the user may not use that agent any more."""
    scope = scope_for(conversation.scope, temporary=conversation.temporary)
    usable = usable_agent(scope, conversation.owner_id)
    return usable.pk if usable else None


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """What a conversation may read of others: whether its user's own memory, and which shared memory."""

    reads_own: bool = True
    scope_id: UUID | None = None


FULL_ACCESS = MemoryAccess()
NO_ACCESS = MemoryAccess(reads_own=False)


def memory_access_of(conversation: Conversation) -> MemoryAccess:
    if conversation.temporary or is_paused(conversation):
        return NO_ACCESS
    return FULL_ACCESS if conversation.scope_id is None else MemoryAccess(False, open_scope(conversation))


def memory_access_in(conversation_id: UUID | str) -> MemoryAccess:
    """Return what a conversation may read, by its id; nothing if it was deleted."""
    rows = Conversation.objects.select_related("user", "scope")
    row = rows.filter(pk=conversation_id).first()
    return memory_access_of(row) if row is not None else NO_ACCESS


def shared_entries(scope_id: UUID) -> QuerySet[MemoryEntry]:
    """Return the entries, of all users, that everybody in the scope may read."""
    withdrawn = withdrawn_entries().filter(scope=scope_id)
    return kept_entries().filter(scope=scope_id).exclude(pk__in=withdrawn.values("pk"))


def readable_scopes(user: User) -> list[tuple[Agent, int]]:
    """Return the agents that this user may use and whose shared memory is open, each with its number of entries."""
    return [
        (agent, shared_entries(agent.pk).count())
        for agent in visible_agents(user).filter(shares_memory=True)
        if scope_for(agent, temporary=False)
    ]


def accessible_scope(user: User, agent_id: str) -> UUID:
    """Return the scope id of an agent that the user may use. Raise NotFound, also if the scope is closed."""
    agent = visible_agents(user).filter(pk=parse_id(agent_id)).first()
    if scope_for(agent, temporary=False) is None or agent is None:
        raise NotFound()
    return agent.pk


def scopes_of(user_id: UUID) -> list[UUID]:
    """Return the scopes in which others may read texts of this user, including those whose agent was deleted."""
    return sorted(as_key(pk) for [pk] in execute(_SCOPES, user_id, user_id).fetchall())


_SCOPES = """
SELECT shared_in FROM chatapp_memoryentry WHERE user_id = %s AND shared_in IS NOT NULL
UNION SELECT shared_in FROM chatapp_conversation WHERE user_id = %s AND shared_in IS NOT NULL
"""
