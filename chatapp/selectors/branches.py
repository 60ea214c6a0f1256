"""What a branch shows: its own messages and its ancestors' up to where it left them."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q, QuerySet

from chatapp.models import Branch, Compaction, Message


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


def visible_compactions(branch: Branch) -> QuerySet[Compaction]:
    """Those that cover only what this branch shows."""
    return Compaction.objects.filter(_seen(branch, -1, "last_position"))


def latest_checkpoint(branch: Branch, before_position: int) -> Compaction | None:
    """The finished compaction that reaches furthest without covering `before_position`."""
    done = visible_compactions(branch).filter(
        status=Compaction.Status.DONE, last_position__lt=before_position
    )
    return done.order_by("-last_position").first()
