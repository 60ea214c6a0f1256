"""Writes what hooks do to a conversation: named actions, and when each hook fired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db import transaction

from agents.events import Fact
from agents.hooks import ModuleAction
from chatapp.agent_presets.hook_actions import NAMED_ACTIONS, name_of, read_params
from chatapp.conversations.actions.conversations import updated_event
from chatapp.conversations.models import Conversation
from chatapp.operations.forgetting_counts import check_forgetting_count
from chatapp.realtime import event_log
from chatapp.runs.models import Run


def run_named_action(*, conversation: Conversation, action: ModuleAction, now: datetime) -> str:
    """Change the conversation as the action says, and return in words what was done. Raise InvalidInput."""
    params = read_params(action, "action")
    with transaction.atomic():
        row = Conversation.objects.select_for_update().get(pk=conversation.pk)
        done = NAMED_ACTIONS[name_of(action)].apply(row, params)
        row.save(update_fields=["pinned", "archived", "title", "title_made_of"])
        event_log.append(row, updated_event(row, now))
    return done


def record_hooks(
    *,
    conversation: Conversation,
    fired: Mapping[str, datetime],
    used: Sequence[Mapping[str, str]] = (),
    added: Sequence[Mapping[str, str]] = (),
    facts: Sequence[Fact] = (),
    run: Run | None = None,
    forgotten_count: int | None = None,
) -> None:
    """Store when hooks fired, remove the waiting notes that were `used` and store those `added` for the next turn.

    Used notes are named, because a turn may begin before the hooks of the one before it are done. `run` is the one that
    the facts are about. With `forgotten_count`, raises ReadForgotten where more was forgotten since the hooks began.
    """
    with transaction.atomic():
        if forgotten_count is not None:
            check_forgetting_count(conversation.forgetting_keys, forgotten_count)
        row = Conversation.objects.select_for_update().filter(pk=conversation.pk).first()
        if row is None:
            return
        times = {hook_id: moment.isoformat() for hook_id, moment in fired.items()}
        waiting = [note for note in row.hook_state.get("waiting", []) if note not in used]
        row.hook_state = {
            "fired": {**row.hook_state.get("fired", {}), **times},
            "waiting": [*waiting, *(dict(note) for note in added if note not in waiting)],
        }
        row.save(update_fields=["hook_state"])
        if facts:
            event_log.append(row, *facts, run=run)
