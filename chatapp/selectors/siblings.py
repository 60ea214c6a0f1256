"""Messages that share one place: a question and its edits, an answer and those given anew."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from uuid import UUID

from django.db.models import Q

from chatapp.models import Branch, Message
from chatapp.selectors.branches import visible_spans

_Place = tuple[UUID | None, str]


def siblings_of(rows: Sequence[Message]) -> dict[UUID, list[UUID]]:
    """Of each of `rows`, all of one conversation, that shares its place: who is there, itself too, oldest first."""
    if not rows or not _has_branches(rows[0].conversation_id):
        return {}
    parents = {row.parent_id for row in rows}
    in_place = Q(parent__in=parents - {None})
    if None in parents:
        in_place |= Q(parent=None)
    # An assistant's row below another is a tool call of it, or goes on where it ended.
    answers = Q(role=Message.Role.ASSISTANT, parent__role=Message.Role.USER)
    questions = Q(role=Message.Role.USER, kind=Message.Kind.MESSAGE)
    found = Message.objects.filter(in_place, answers | questions, conversation=rows[0].conversation_id)
    places: dict[_Place, list[UUID]] = defaultdict(list)
    for message_id, parent_id, role in found.order_by("position").values_list("pk", "parent", "role"):
        places[parent_id, role].append(message_id)
    shared = [ids for ids in places.values() if len(ids) > 1]
    return {message_id: ids for ids in shared for message_id in ids}


def _has_branches(conversation_id: UUID) -> bool:
    return Branch.objects.filter(conversation=conversation_id)[:2].count() > 1


def newest_branch_showing(message: Message) -> Branch:
    """Of the branches in which `message` is seen, the one in which something was said last."""
    branches = Branch.objects.filter(conversation=message.conversation_id)
    showing = [branch for branch in branches if _shows(branch, message)]
    said = Message.objects.filter(conversation=message.conversation_id, branch__in=showing)
    return said.select_related("branch").latest("position").branch


def _shows(branch: Branch, message: Message) -> bool:
    return any(
        branch_id == message.branch_id and (upto is None or message.position <= upto)
        for branch_id, upto in visible_spans(branch)
    )
