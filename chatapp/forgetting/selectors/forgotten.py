"""Reads receipts, proposals, the messages of a day, and unfinished removals."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.lookups import GreaterThan

from chatapp.accounts.models import User
from chatapp.conversations import message_values
from chatapp.conversations.models import Conversation, Message
from chatapp.forgetting.models import ForgetProposal, ForgetReceipt, Removal, Tombstone
from chatapp.forgetting.selectors.derived import IS_CALL, with_written
from chatapp.long_term.models import MemoryEntry
from chatapp.operations.clock import iso_time
from chatapp.operations.database.access import find_row, parse_id
from chatapp.operations.database.ids import id_or_none
from chatapp.operations.errors import ReadForgotten
from chatapp.operations.workers.leases import is_out_of_lease
from chatapp.recall.models import SearchOwner
from memory.language.sentences import split_sentences

FORGOTTEN_MEANWHILE = "Something is being forgotten right now. Please try again."


def accessible_receipts(user: User) -> QuerySet[ForgetReceipt]:
    return ForgetReceipt.objects.filter(user=user)


def accessible_receipt(user: User, receipt_id: str) -> ForgetReceipt:
    """Return a receipt of the user. Raise NotFound."""
    return find_row(accessible_receipts(user), receipt_id)


def barring_receipts(user: User) -> QuerySet[Any]:
    """Return the receipts that have tombstones, with the `count` of these and whether any is `for_good`."""
    barred = Tombstone.objects.filter(receipt=OuterRef("pk"))
    counts = (
        barred.order_by()
        .values("receipt")
        .annotate(count=Count("pk"), kept=Count("pk", filter=Q(for_good=True)))
    )
    # Subqueries count for the rows of a page only. For `Exists`, PostgreSQL would read the tombstones of all users.
    rows = accessible_receipts(user).filter(Exists(barred))
    for_good = GreaterThan(Subquery(counts.values("kept")), 0)
    return rows.annotate(count=Subquery(counts.values("count")), for_good=for_good)


def accessible_proposal(user: User, proposal_id: str) -> ForgetProposal:
    """Return a proposal of the user. Raise NotFound."""
    return find_row(ForgetProposal.objects.filter(user=user).select_related("receipt"), proposal_id)


def messages_of_day(user: User, start: datetime, end: datetime) -> list[UUID]:
    """Return the messages written from `start` to before `end`. An answer and its tool calls belong to the day on which
    it was requested and to the day of its question, however late it ends."""
    said = with_written(Message.objects.filter(conversation__user=user))
    is_asked = Q(run__created_at__gte=start, run__created_at__lt=end)
    is_asked |= Q(run__question__created_at__gte=start, run__question__created_at__lt=end)
    # Messages without a run come from users, programs and imports. Tool messages of an answer go with the answer.
    is_said = Q(created_at__gte=start, created_at__lt=end, run=None)
    is_alone = Q(role=Message.Role.USER) | Q(parent__run=None) | ~IS_CALL
    is_empty = Q(parts=[], forgotten_at__isnull=False)
    return list(said.filter(is_asked | (is_said & is_alone)).exclude(is_empty).values_list("pk", flat=True))


def proposal_items(user: User, items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each item with its current text, without items that are gone and entries that were changed since."""
    wanted = list(items)
    ids = [parse_id(item["id"]) for item in wanted if item["kind"] == "message"]
    messages = Message.objects.filter(conversation__user=user).in_bulk(ids)
    shapes = {
        str(row.pk): _item("message", row, message_values.text_of(row.parts), role=row.role)
        for row in messages.values()
        if row.parts
    }
    entries = _unchanged_entries(user, wanted)
    for item in wanted:
        if item["kind"] == "entry" and (row := entries.get(item["id"])):
            text = " ".join(_lines(row, item))
            shapes[item["id"]] = _item("entry", row, text, day=row.day.isoformat())
    return [shapes[item["id"]] for item in wanted if item["id"] in shapes]


def proposed_lines(user: User, items: Iterable[dict[str, Any]]) -> dict[UUID, list[str]]:
    """Return by entry id the proposed sentences of each entry that was not changed since."""
    wanted = [item for item in items if item["kind"] == "entry"]
    entries = _unchanged_entries(user, wanted)
    return {row.pk: _lines(row, item) for item in wanted if (row := entries.get(item["id"]))}


def _unchanged_entries(user: User, items: Iterable[dict[str, Any]]) -> dict[str, MemoryEntry]:
    revisions = {item["id"]: item["revision"] for item in items if item["kind"] == "entry"}
    found = MemoryEntry.objects.filter(user=user).in_bulk([parse_id(one) for one in revisions])
    return {str(pk): row for pk, row in found.items() if row.revision == revisions[str(pk)]}


def _lines(entry: MemoryEntry, item: dict[str, Any]) -> list[str]:
    sentences = split_sentences(entry.text)
    return [sentences[number].strip() for number in item["sentences"] if number < len(sentences)]


PREVIEW_CHARS = 240


def _item(kind: str, row: Message | MemoryEntry, text: str, **more: str) -> dict[str, Any]:
    return {
        "kind": kind,
        "id": str(row.pk),
        "preview": text[:PREVIEW_CHARS],
        "created_at": iso_time(row.created_at),
        "conversation_id": id_or_none(row.conversation_id),
        **more,
    }


def has_more_to_forget(conversation: Conversation) -> bool:
    """Return whether a forgetting in pieces still has to reach messages of the conversation."""
    begun = Removal.objects.filter(user_id=conversation.owner_id, phase=Removal.Phase.CHOSEN)
    left = {key for chosen in begun.values_list("chosen", flat=True) for key in chosen.get("messages", ())}
    return bool(left) and any(str(pk) in left for pk in conversation.messages.values_list("pk", flat=True))


def waiting_removals(now: datetime) -> list[int]:
    """Return the ids of some removals that no process holds, longest waiting first."""
    rows = Removal.objects.filter(is_out_of_lease(now, Removal.LEASE)).order_by("lease_expires_at", "pk")
    return list(rows.values_list("pk", flat=True)[:20])


def check_nothing_is_being_forgotten(user_id: UUID) -> None:
    """Raise ReadForgotten while messages of the user are being forgotten in pieces, because the remaining pieces and
    answers that repeat them still exist. Call it before copying messages, after `read_forgetting_count`."""
    if Removal.objects.filter(user_id=user_id, phase=Removal.Phase.CHOSEN).exists():
        raise ReadForgotten(FORGOTTEN_MEANWHILE)


def has_abandoned_index() -> bool:
    return SearchOwner.objects.filter(user=None, scope=None).exists()
