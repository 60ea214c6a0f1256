"""Changes several conversations with the actions for a single one."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

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


def change_conversations(
    user: User, ids: Iterable[str], action: Action, folder: Folder | None, *, now: datetime
) -> dict[str, list[Any]]:
    """Change the conversations and return their ids as `done`, `not_found` or, with the reason, `refused`."""
    result: dict[str, list[Any]] = {"done": [], "not_found": [], "refused": []}
    # A refused or unknown id does not prevent changes to the others.
    for conversation_id in dict.fromkeys(ids):
        try:
            _change(user, conversation_id, action, folder, now)
        except NotFound:
            result["not_found"].append(conversation_id)
        except Conflict as refusal:
            result["refused"].append({"id": conversation_id, "message": str(refusal)})
        else:
            result["done"].append(conversation_id)
    return result


def _change(user: User, conversation_id: str, action: Action, folder: Folder | None, now: datetime) -> None:
    """Change a conversation, unless it is in the wanted state already. Raise NotFound, Conflict."""
    match action:
        case "archive" | "unarchive":
            is_archived = action == "archive"
            if accessible_conversation(user, conversation_id).archived != is_archived:
                update_conversation(user=user, conversation_id=conversation_id, now=now, archived=is_archived)
        case "move":
            if accessible_conversation(user, conversation_id).folder_id != (folder.pk if folder else None):
                update_conversation(user=user, conversation_id=conversation_id, now=now, folder=folder)
        case "trash" if is_in_trash(user, conversation_id, now):
            pass
        case "trash" if current("TRASH_DAYS"):
            move_to_trash(user, conversation_id, days=current("TRASH_DAYS"), now=now)
        case "trash":
            forget_whole_conversation(user, conversation_id, now=now)
        case "restore" if is_in_trash(user, conversation_id, now):
            restore(user, conversation_id, now=now)
        case "restore":
            accessible_conversation(user, conversation_id)  # raises NotFound
