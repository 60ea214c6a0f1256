"""Writes removals (see `Removal`): deletes conversations and forgets many rows in short transactions.

No request, run or search finds a conversation without a user, because each reads the conversations of one user.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db import models, transaction
from django.db.models import QuerySet
from django.db.models.functions import Cast, Length

from chatapp.compaction.models import Compaction
from chatapp.context.models import RequestText, SentRequest
from chatapp.conversations import message_values
from chatapp.conversations.models import Conversation, Message
from chatapp.files.actions import delete_unshared_attachments
from chatapp.files.attachments import discard_content
from chatapp.files.models import Offload
from chatapp.forgetting.actions.collecting import Chosen
from chatapp.forgetting.actions.derived_texts import request_texts
from chatapp.forgetting.actions.proposals import note_confirmed
from chatapp.forgetting.models import ForgetProposal, ForgetReceipt, Removal, Tombstone
from chatapp.long_term.actions.tombstones import MAX_SENTENCES, make_tombstones, store_tombstones
from chatapp.operations import clock
from chatapp.operations.database.work_budget import Budget, PacedTransactions, Spending, delete_some
from chatapp.operations.errors import Conflict
from chatapp.operations.workers.leases import is_out_of_lease
from chatapp.providers.models import Usage
from chatapp.realtime.models import Event
from chatapp.recall.actions.blanking import publish_forgotten
from chatapp.recall.actions.claims import replace_claims
from chatapp.recall.actions.indexing import lock_indexes_of
from chatapp.runs.models import Run, RunStep, ToolCall

MESSAGES_AT_ONCE = 25
CHARS_AT_ONCE = 50_000
TOMBSTONES_AT_ONCE = 200
TOLD_AT_ONCE = 50


def begin_import(conversation: Conversation) -> Removal:
    """Detach a new conversation from its user until its import is complete, in the transaction that creates it."""
    removal = Removal.objects.create(
        conversation_id=conversation.pk,
        user_id=conversation.owner_id,
        phase=Removal.Phase.IMPORT,
        lease_expires_at=clock.now() + Removal.LEASE,
    )
    Conversation.objects.filter(pk=conversation.pk).update(user=None)
    return removal


def renew_import(removal: Removal) -> None:
    """Renew the lease of an import, in each transaction that adds rows. Raise Conflict if a sweep has taken over."""
    held = Removal.objects.filter(pk=removal.pk, phase=Removal.Phase.IMPORT)
    if not held.update(lease_expires_at=clock.now() + Removal.LEASE):
        raise Conflict("The import took too long and was given up. Please try again.")


def end_import(removal: Removal) -> None:
    """Delete the removal of an import, as the conversation is given to its user. Raise Conflict like `renew_import`."""
    renew_import(removal)
    Removal.objects.filter(pk=removal.pk).delete()


# --- Many messages and entries -----------------------------------------------------------------------------


def begin_forgetting_many(
    chosen: Chosen, *, what: str, for_good: bool = False, confirms: ForgetProposal | None = None
) -> Removal:
    """Record messages and entries to forget before forgetting any, so that the sweep finishes an interrupted
    forgetting. The caller has checked that they exist. Raise NotFound if another process has confirmed `confirms`."""
    # Ids sort by time, and neighbours share summaries and entries.
    left = {
        "messages": sorted(map(str, chosen.message_ids)),
        "entries": sorted(map(str, chosen.entry_ids)),
        "lines": {str(pk): list(lines) for pk, lines in chosen.lines.items()},
    }
    with transaction.atomic():
        receipt = ForgetReceipt.objects.create(user=chosen.user, what=what, at=chosen.now)
        if confirms is not None:
            note_confirmed(confirms, receipt)
        return Removal.objects.create(
            user_id=chosen.user.pk,
            phase=Removal.Phase.CHOSEN,
            chosen=left,
            for_good=for_good,
            receipt=receipt,
            lease_expires_at=chosen.now + Removal.LEASE,
        )


def bar_in_pieces(removal: Removal, tombstones: Sequence[Tombstone], turns: PacedTransactions) -> None:
    """Store tombstones, a few in each transaction. From then on their sentences are not learned again."""
    if removal.chosen.get("is_barred"):
        return
    for first in range(0, len(tombstones), TOMBSTONES_AT_ONCE):
        some = tombstones[first : first + TOMBSTONES_AT_ONCE]
        with turns.hold(), transaction.atomic():
            store_tombstones(some, receipt=removal.receipt, for_good=removal.for_good)
    with turns.hold(), transaction.atomic():
        set_in_receipt(removal.receipt, {"tombstones": len(tombstones)})
        _note(removal, is_barred=True)


def is_held(removal: Removal) -> bool:
    """Reload the progress of a removal; return whether anything is left to forget. Call it after `begin_forgetting`,
    which makes other forgettings of this user wait, in the same transaction."""
    now = Removal.objects.filter(pk=removal.pk).first()
    removal.phase = now.phase if now else Removal.Phase.BEHIND
    removal.chosen = now.chosen if now else {}
    return removal.phase == Removal.Phase.CHOSEN


def note_forgotten(
    removal: Removal,
    ids: Collection[UUID],
    *,
    sources: Iterable[UUID] = (),
    conversation_ids: Collection[UUID] = (),
    changed: Iterable[UUID] = (),
    remade: Iterable[UUID] = (),
    repeating: Iterable[UUID] = (),
) -> None:
    """Record what one piece of a removal forgot: the messages it `changed` and the entries and summaries it `remade`.
    Call it in the transaction that forgets the piece.

    After the last piece, messages `repeating` the text are proposed, `sources` leave the index, texts stored for
    requests of their conversations until now are deleted, and clients are notified of changed messages.
    """
    gone, before = {*map(str, ids)}, removal.chosen
    left = {kind: [pk for pk in before[kind] if pk not in gone] for kind in ("messages", "entries")}
    homes = _with(before, "conversations", conversation_ids)
    # Later requests do not contain the forgotten text, so delete only up to the newest request text of now.
    newest = request_texts([UUID(pk) for pk in homes]).order_by("-pk").values_list("pk", flat=True).first()
    if not any(left.values()):
        removal.phase = Removal.Phase.BEHIND
    _note(
        removal,
        **left,
        # Their ids stay, because the entries keep their other lines and thus their place in the index.
        lines={pk: [] if pk in gone else lines for pk, lines in before.get("lines", {}).items()},
        sources=_with(before, "sources", sources),
        conversations=homes,
        newest_request_text=newest or 0,
        untold=_with(before, "untold", changed),
        remade=_with(before, "remade", remade),
        repeating=_with(before, "repeating", repeating),
    )


def _with(chosen: Mapping[str, Any], kind: str, ids: Iterable[UUID]) -> list[str]:
    return list(dict.fromkeys([*chosen.get(kind, ()), *map(str, ids)]))


def _note(removal: Removal, **chosen: Any) -> None:
    removal.chosen = {**removal.chosen, **chosen}
    Removal.objects.filter(pk=removal.pk).update(
        phase=removal.phase, chosen=removal.chosen, lease_expires_at=clock.now() + Removal.LEASE
    )


@transaction.atomic
def publish_forgotten_later(removal: Removal) -> None:
    """Send the events of some forgotten messages."""
    chosen = removal.chosen
    untold = [UUID(pk) for pk in chosen.get("untold", [])]
    told = Message.objects.filter(pk__in=untold[:TOLD_AT_ONCE], conversation__user__isnull=False)
    rows = list(told.order_by("position"))
    homes = Conversation.objects.filter(pk__in={row.conversation_id for row in rows})
    for conversation in homes.select_for_update().order_by("pk"):
        here = [row for row in rows if row.conversation_id == conversation.pk]
        publish_forgotten(conversation, here, clock.now())
    _note(removal, untold=[str(pk) for pk in untold[TOLD_AT_ONCE:]])


@transaction.atomic
def remove_texts_behind(removal: Removal, budget: Budget) -> bool:
    """Delete texts stored for requests; return whether none are left."""
    chosen, spending = removal.chosen, budget.start()
    texts = request_texts(chosen.get("conversations", ()))
    is_done = delete_some(texts.filter(pk__lte=chosen.get("newest_request_text", 0)), spending)
    add_to_receipt(removal.receipt, {"requests": spending.rows})
    Removal.objects.filter(pk=removal.pk).update(lease_expires_at=clock.now() + Removal.LEASE)
    return is_done


# --- Leases and phases ---------------------------------------------------------------------------------------


def claim_removal(*, removal_id: int, now: datetime) -> Removal | None:
    """Take the lease of a removal; None if it is done or another process holds it."""
    free = Removal.objects.filter(is_out_of_lease(now, Removal.LEASE), pk=removal_id)
    claimed = free.update(lease_expires_at=now + Removal.LEASE)
    return Removal.objects.filter(pk=removal_id).select_related("receipt__user").first() if claimed else None


def release_removal(*, removal_id: int, now: datetime) -> None:
    """Release the lease, so that another process can continue."""
    Removal.objects.filter(pk=removal_id).update(lease_expires_at=now)


def enter_phase(removal: Removal, phase: str) -> None:
    """Store the phase and renew the lease. The row is missing if another process has finished the removal."""
    removal.phase = phase
    Removal.objects.filter(pk=removal.pk).update(phase=phase, lease_expires_at=clock.now() + Removal.LEASE)


def reduce_to_row_deletion(removal: Removal) -> None:
    """Reduce a removal to deleting rows, because the user's account is gone: skip tombstones and copies elsewhere."""
    removal.forgets = removal.raises_tombstones = removal.keeps_rows = False
    removal.entries = {}
    removal.receipt = None
    if removal.phase == Removal.Phase.TRACES:
        removal.phase = Removal.Phase.INDEX
    if removal.phase == Removal.Phase.CHOSEN:
        removal.phase, removal.chosen = Removal.Phase.BEHIND, {}
    removal.save(
        update_fields=["forgets", "keeps_rows", "raises_tombstones", "entries", "receipt", "phase", "chosen"]
    )


def open_removals(user_id: UUID) -> list[Removal]:
    """Return the unfinished removals of a user, oldest first."""
    return list(Removal.objects.filter(user_id=user_id).order_by("pk"))


def end_removal(removal: Removal) -> None:
    Removal.objects.filter(pk=removal.pk).delete()


# --- Rows, in pieces ------------------------------------------------------------------------------------


def remove_rows(removal: Removal, budget: Budget) -> bool:
    """Delete rows of the conversation in one transaction, referencing rows first; after its commit, also files that
    nothing else uses. Return whether no rows are left."""
    home = removal.home
    groups = _next_messages(removal, budget)
    with transaction.atomic():
        spending = budget.start()
        if not _forget_usage(home, spending):
            return False
        for rows in _hanging_on(home):
            if not delete_some(rows, spending):
                return False
        hashes = _delete_messages(removal, groups, spending)
        transaction.on_commit(partial(discard_content, hashes))
        if Message.objects.filter(conversation=home).exists():
            return False
        Conversation.with_unowned.filter(pk=home, user=None).delete()
        return True


def _hanging_on(home: UUID) -> list[QuerySet[Any]]:
    """Return the rows that reference the conversation, in the order of deletion, without its messages."""
    return [
        Event.objects.filter(conversation=home),
        ToolCall.objects.filter(run__conversation=home),
        RunStep.objects.filter(run__conversation=home),
        SentRequest.objects.filter(run__conversation=home),
        RequestText.objects.filter(conversation=home),
        Offload.objects.filter(conversation=home),
        Compaction.objects.filter(conversation=home).order_by("-created_at", "pk"),
        Run.objects.filter(conversation=home),
    ]


def _forget_usage(home: UUID, spending: Spending) -> bool:
    """Detach usage rows from the conversation, so that its cost stays counted. Return whether none are left."""
    rows = Usage.objects.filter(conversation=home)
    while some := list(rows.values_list("pk", flat=True)[: max(1, min(100, spending.rows_left))]):
        Usage.objects.filter(pk__in=some).update(conversation=None, run=None)
        spending.spend(len(some))
        if spending.is_spent:
            return False
    return True


@dataclass(frozen=True, slots=True)
class _Group:
    """Messages to delete together, and the tombstones of what their user said."""

    ids: list[UUID]
    chars: int
    tombstones: list[Tombstone]


def _next_messages(removal: Removal, budget: Budget) -> list[_Group]:
    """Return as many messages as one transaction may delete, newest first because the older ones are their parents."""
    rows = Message.objects.filter(conversation=removal.home).order_by("-position")
    sized = rows.annotate(chars=Length(Cast("parts", models.TextField())))
    groups: list[_Group] = []
    ids: list[UUID] = []
    total = chars = 0
    for pk, size in sized.values_list("pk", "chars")[: budget.rows]:
        ids.append(pk)
        chars += size
        total += size
        if len(ids) >= min(MESSAGES_AT_ONCE, budget.rows) or chars >= CHARS_AT_ONCE:
            groups.append(_Group(ids, chars, _tombstones(removal, ids)))
            ids, chars = [], 0
        if total >= budget.chars:
            break
    return [*groups, _Group(ids, chars, _tombstones(removal, ids))] if ids else groups


def _tombstones(removal: Removal, ids: Collection[UUID]) -> list[Tombstone]:
    """Return the tombstones of these messages. Call it before the transaction, because splitting sentences is slow."""
    if not removal.raises_tombstones or removal.tombstone_count >= MAX_SENTENCES:
        return []
    said = Message.objects.filter(pk__in=ids, role=Message.Role.USER).values_list("parts", flat=True)
    texts = map(message_values.text_of, said)
    return make_tombstones(removal.user_id, texts, removal.created_at)


def _delete_messages(removal: Removal, groups: Iterable[_Group], spending: Spending) -> tuple[str, ...]:
    """Delete messages until the budget is spent. Return the hashes of files that nothing else uses."""
    hashes: list[str] = []
    barred: dict[int, Tombstone] = {}
    # The index lock also guards claims. Take it before the locks of tombstones.
    lock_indexes_of([removal.user_id])
    for group in groups:
        # Drop claims before their messages: after a mere cascade, no later claim would supersede what these did.
        replace_claims(removal.user_id, "message_id", group.ids, keeps_named=False)
        barred |= {row.whole: row for row in group.tombstones}
        hashes += delete_unshared_attachments(group.ids)
        Message.objects.filter(pk__in=group.ids).delete()
        spending.spend(len(group.ids), group.chars)
        if spending.is_spent:
            break
    rows = [*barred.values()]
    if tombstones := store_tombstones(rows, for_good=removal.for_good, receipt=removal.receipt):
        removal.tombstone_count += tombstones
        Removal.objects.filter(pk=removal.pk).update(tombstone_count=removal.tombstone_count)
    add_to_receipt(removal.receipt, {"tombstones": tombstones, "files": len(hashes)})
    return tuple(hashes)


def add_to_receipt(receipt: ForgetReceipt | None, removed: Mapping[str, int]) -> None:
    """Reload a receipt and add counts to it. Call it in the transaction that removes what is counted."""
    if receipt is None or not any(removed.values()):
        return
    receipt.refresh_from_db(fields=["removed"])
    set_in_receipt(receipt, {name: receipt.removed.get(name, 0) + count for name, count in removed.items()})


def set_in_receipt(receipt: ForgetReceipt | None, counts: Mapping[str, int]) -> None:
    if receipt is None:
        return
    now = {**receipt.removed, **counts}
    receipt.removed = {name: now[name] for name in sorted(now) if now[name]}
    receipt.save(update_fields=["removed"])
