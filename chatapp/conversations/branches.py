"""Reads the messages of a branch: its own, and those of its ancestors up to the fork."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from uuid import UUID

from django.db.models import Max, Q, QuerySet, Sum

from chatapp.compaction.models import Compaction
from chatapp.conversations.models import Branch, Message
from chatapp.operations.database.statements import columns_of, read_models


def visible_spans(branch: Branch) -> dict[UUID, int | None]:
    """Return the last visible position by branch id, nearest branch first; None = to its end."""
    return {branch.pk: None, **{UUID(raw): upto for raw, upto in branch.lineage}}


def is_visible(spans: Mapping[UUID, int | None], branch_id: UUID | None, position: int) -> bool:
    """Return whether a position of a branch is in these `visible_spans`."""
    upto = spans.get(branch_id, -1) if branch_id else -1
    return upto is None or position <= upto


def lineage_below(message: Message) -> list[list[str | int]]:
    """Return the lineage of a branch that begins after `message`."""
    # Flat, so that one query reads a branch however deeply it is nested.
    return [[str(message.branch_id), message.position], *message.branch.lineage]


def _visible(branch: Branch, after_position: int, field: str) -> Q:
    """Return the condition that a row is visible in the branch, by its branch and the position in `field`."""
    visible = Q(branch=branch)
    for branch_id, upto in visible_spans(branch).items():
        if upto is not None and upto > after_position:
            visible |= Q(branch_id=branch_id, **{f"{field}__lte": upto})
    return visible


def visible_sql(branch: Branch, after_position: int, column: str) -> tuple[str, list[UUID | int]]:
    """Return the condition of `_visible` as fixed SQL, with its values."""
    condition, values = "branch_id = %s", list[UUID | int]([branch.pk])
    for branch_id, upto in visible_spans(branch).items():
        if upto is not None and upto > after_position:
            condition += f" OR branch_id = %s AND {column} <= %s"
            values += [branch_id, upto]
    return f"({condition})", values


def visible_messages(branch: Branch, after_position: int = -1) -> QuerySet[Message]:
    """Return the messages visible in the branch after a position, unordered. Skip ancestors that end before it."""
    return Message.objects.filter(_visible(branch, after_position, "position"), position__gt=after_position)


def messages_between(branch: Branch, first_position: int, last_position: int) -> QuerySet[Message]:
    """Return the messages visible in the branch from a position to another, including both, unordered."""
    return visible_messages(branch, first_position - 1).filter(position__lte=last_position)


def hidden_messages(branch: Branch) -> QuerySet[Message]:
    """Return the messages of the conversation that only other branches show, unordered."""
    rows = Message.objects.filter(conversation_id=branch.conversation_id)
    return rows.exclude(_visible(branch, -1, "position"))


def visible_compactions(branch: Branch) -> QuerySet[Compaction]:
    """Return the compactions that cover only messages visible in this branch."""
    return Compaction.objects.filter(_visible(branch, -1, "last_position"))


REFIT_FACTOR = 2
"""A checkpoint made for a window this many times smaller is skipped if the original messages fit again."""
REFIT_SHARE = 0.6
"""The originals fit when they take at most this share of the budget."""


def usable_checkpoint(branch: Branch, *, before_position: int, budget_tokens: int) -> Compaction | None:
    """Return the latest finished compaction; for a larger model, an earlier one (or None) after which everything fits.

    Messages that the user cleared stay cleared, even if they fit.
    """
    row = latest_checkpoint(branch, before_position)
    tokens_after: int | None = None
    while row is not None and row.budget_tokens * REFIT_FACTOR <= budget_tokens:
        if row.strategy == Compaction.CLEARED:
            break
        if tokens_after is None:
            left = visible_messages(branch, row.last_position)
            tokens_after = left.aggregate(tokens=Sum("token_estimate", default=0))["tokens"]
        # Skipping this checkpoint brings back the messages it covers.
        tokens_after += row.span_tokens
        if tokens_after > REFIT_SHARE * budget_tokens:
            break
        row = row.previous
    return row


def latest_checkpoint(branch: Branch, before_position: int) -> Compaction | None:
    """Return the finished compaction with the last span that ends before `before_position`."""
    visible, values = visible_sql(branch, -1, "last_position")
    columns = columns_of(Compaction, "chatapp_compaction")
    sql = f"SELECT {columns} FROM chatapp_compaction WHERE {visible} {_LATEST_DONE}"
    return next((row for (row,) in read_models([Compaction], sql, *values, before_position)), None)


_LATEST_DONE = """
AND status = 'done' AND last_position < %s ORDER BY last_position DESC, created_at DESC, id DESC LIMIT 1
"""


def covered_count(branch: Branch, row: Compaction) -> int:
    """Return how many messages a checkpoint replaces, including those of the checkpoints it continues."""
    if row.previous_id is None:
        return row.message_count
    chain = visible_compactions(branch).filter(
        status=Compaction.Status.DONE, last_position__lte=row.last_position
    )
    total: int = chain.aggregate(total=Sum("message_count", default=0))["total"]
    return total


def cleared_upto(branch: Branch, before_position: int) -> int:
    """Return the last position before `before_position` that the user cleared from the context; -1 if none."""
    cleared = visible_compactions(branch).filter(
        status=Compaction.Status.DONE, strategy=Compaction.CLEARED, last_position__lt=before_position
    )
    last: int = cleared.aggregate(last=Max("last_position", default=-1))["last"]
    return last


def siblings_of(rows: Sequence[Message]) -> dict[UUID, list[UUID]]:
    """Return the alternatives of each of `rows` that has any: edits or other answers, including itself, oldest first.

    All rows must belong to one conversation.
    """
    # Most conversations have one branch, where no message has an alternative.
    if not rows or Branch.objects.filter(conversation=rows[0].conversation_id)[:2].count() < 2:
        return {}
    parents = {row.parent_id for row in rows}
    below = Q(parent__in=parents - {None})
    # SQL's IN does not match NULL.
    if None in parents:
        below |= Q(parent=None)
    # An assistant message whose parent is another one is its tool call or its continuation.
    answers = Q(role=Message.Role.ASSISTANT, parent__role=Message.Role.USER)
    questions = Q(role=Message.Role.USER, kind=Message.Kind.MESSAGE)
    found = Message.objects.filter(below, answers | questions, conversation=rows[0].conversation_id)
    groups: dict[tuple[UUID | None, str], list[UUID]] = defaultdict(list)
    for message_id, parent_id, role in found.order_by("position").values_list("pk", "parent", "role"):
        groups[parent_id, role].append(message_id)
    return {message_id: ids for ids in groups.values() if len(ids) > 1 for message_id in ids}


def newest_branch_showing(message: Message) -> Branch:
    """Return, of the branches that show `message`, the one with the newest message."""
    branches = Branch.objects.filter(conversation=message.conversation_id)
    showing = [
        branch
        for branch in branches
        if is_visible(visible_spans(branch), message.branch_id, message.position)
    ]
    rows = Message.objects.filter(conversation=message.conversation_id, branch__in=showing)
    return rows.select_related("branch").latest("position").branch
