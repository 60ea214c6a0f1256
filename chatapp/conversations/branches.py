"""What a branch shows: its own messages and its ancestors' up to where it left them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from uuid import UUID

from django.db.models import Max, Q, QuerySet, Sum

from chatapp.compaction.models import Compaction
from chatapp.conversations.models import Branch, Message


def visible_spans(branch: Branch) -> list[tuple[UUID, int | None]]:
    """`(branch_id, last_visible_position)`, nearest first; None = to its end."""
    ancestors: list[tuple[UUID, int | None]] = [(UUID(raw), upto) for raw, upto in branch.lineage]
    return [(branch.pk, None), *ancestors]


def lineage_below(message: Message) -> list[list[str | int]]:
    """The lineage of a branch that leaves after `message`."""
    return [[str(message.branch_id), message.position], *message.branch.lineage]


def _seen(branch: Branch, after_position: int, field: str) -> Q:
    seen = Q(branch=branch)
    for branch_id, upto in visible_spans(branch)[1:]:
        if upto is not None and upto > after_position:
            seen |= Q(branch_id=branch_id, **{f"{field}__lte": upto})
    return seen


def visible_messages(branch: Branch, after_position: int = -1) -> QuerySet[Message]:
    """Unordered; order by `position`. Ancestors that end before `after_position` cost nothing."""
    return Message.objects.filter(_seen(branch, after_position, "position"), position__gt=after_position)


def hidden_messages(branch: Branch) -> QuerySet[Message]:
    """The rest of its conversation, unordered: what other branches say instead."""
    rows = Message.objects.filter(conversation_id=branch.conversation_id)
    return rows.exclude(_seen(branch, -1, "position"))


def visible_compactions(branch: Branch) -> QuerySet[Compaction]:
    """Those that cover only what this branch shows."""
    return Compaction.objects.filter(_seen(branch, -1, "last_position"))


REFIT_FACTOR = 2
"""A checkpoint made for a window this much smaller is one too many where the originals fit again."""
REFIT_SHARE = 0.6


def usable_checkpoint(branch: Branch, *, before_position: int, budget_tokens: int) -> Compaction | None:
    """The latest finished compaction; after a switch to a larger model, an earlier one from which on all fits.

    What the user cleared stays cleared, however much fits.
    """
    row = latest_checkpoint(branch, before_position)
    tokens_after: int | None = None
    while row is not None and row.budget_tokens * REFIT_FACTOR <= budget_tokens:
        if row.strategy == Compaction.CLEARED:
            break
        if tokens_after is None:
            tokens_after = _tokens_after(branch, row.last_position)
        tokens_after += row.span_tokens
        if tokens_after > REFIT_SHARE * budget_tokens:
            break
        row = row.previous
    return row


def _tokens_after(branch: Branch, position: int) -> int:
    return visible_messages(branch, position).aggregate(tokens=Sum("token_estimate"))["tokens"] or 0


def latest_checkpoint(branch: Branch, before_position: int) -> Compaction | None:
    """The finished compaction that reaches furthest without covering `before_position`."""
    done = visible_compactions(branch).filter(
        status=Compaction.Status.DONE, last_position__lt=before_position
    )
    return done.order_by("-last_position", "-created_at", "-pk").first()


def covered_count(branch: Branch, row: Compaction) -> int:
    """The messages a checkpoint stands for, those of the checkpoints it grew from included."""
    if row.previous_id is None:
        return row.message_count
    chain = visible_compactions(branch).filter(
        status=Compaction.Status.DONE, last_position__lte=row.last_position
    )
    total: int = chain.aggregate(total=Sum("message_count", default=0))["total"]
    return total


def cleared_upto(branch: Branch, before_position: int) -> int:
    """The last position the user cleared from the context before there; -1 where they did not."""
    cleared = visible_compactions(branch).filter(
        status=Compaction.Status.DONE, strategy=Compaction.CLEARED, last_position__lt=before_position
    )
    last: int = cleared.aggregate(last=Max("last_position", default=-1))["last"]
    return last


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
