"""Changes several conversations with the actions for a single one. Skips those that are already in the wanted state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from chatapp.accounts.models import User
from chatapp.conversations.access import accessible_conversation
from chatapp.conversations.actions.conversations import update_conversation
from chatapp.conversations.models import Folder
from chatapp.forgetting.services import forget_whole_conversation
from chatapp.forgetting.trash.selectors import is_in_trash
from chatapp.forgetting.trash.services import move_to_trash, restore
from chatapp.operations.configuration.changeable_settings import current
from chatapp.operations.errors import Conflict, NotFound

Action = Literal["archive", "unarchive", "move", "trash", "restore"]


@dataclass(slots=True)
class Outcome:
    done: list[str] = field(default_factory=list)
    not_found: list[str] = field(default_factory=list)
    refused: list[dict[str, str]] = field(default_factory=list)


def change_conversations(
    user: User, ids: Iterable[str], action: Action, folder: Folder | None, *, now: datetime
) -> Outcome:
    """Return the result for each id. A refused or unknown id does not prevent changes to the others."""
    change = _change_of(action, folder)
    outcome = Outcome()
    for conversation_id in dict.fromkeys(ids):
        try:
            change(user, conversation_id, now)
        except NotFound:
            outcome.not_found.append(conversation_id)
        except Conflict as refusal:
            outcome.refused.append({"id": conversation_id, "message": str(refusal)})
        else:
            outcome.done.append(conversation_id)
    return outcome


def _change_of(action: Action, folder: Folder | None) -> Callable[[User, str, datetime], None]:
    if action == "trash":
        return _trash
    if action == "restore":
        return _restore
    if action == "move":
        return lambda user, pk, now: _move(user, pk, folder, now)
    return lambda user, pk, now: _archive(user, pk, action == "archive", now)


def _archive(user: User, conversation_id: str, is_archived: bool, now: datetime) -> None:
    if accessible_conversation(user, conversation_id).archived != is_archived:
        update_conversation(user=user, conversation_id=conversation_id, now=now, archived=is_archived)


def _move(user: User, conversation_id: str, folder: Folder | None, now: datetime) -> None:
    if accessible_conversation(user, conversation_id).folder_id != (folder.pk if folder else None):
        update_conversation(user=user, conversation_id=conversation_id, now=now, folder=folder)


def _trash(user: User, conversation_id: str, now: datetime) -> None:
    if is_in_trash(user, conversation_id, now):
        return
    if current("TRASH_DAYS"):
        move_to_trash(user, conversation_id, days=current("TRASH_DAYS"), now=now)
    else:
        forget_whole_conversation(user, conversation_id, now=now)


def _restore(user: User, conversation_id: str, now: datetime) -> None:
    if is_in_trash(user, conversation_id, now):
        restore(user, conversation_id, now=now)
    else:
        # Raises NotFound. A conversation outside the trash needs no change.
        accessible_conversation(user, conversation_id)
