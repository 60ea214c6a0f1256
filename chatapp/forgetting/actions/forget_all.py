"""Forgets a whole conversation or everything of a user, by deleting rows instead of blanking them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.dispatch import Signal

from chatapp.accounts.models import User
from chatapp.conversations.access import accessible_conversation, lock_conversation
from chatapp.conversations.models import Conversation, Folder, Message
from chatapp.files.models import Attachment
from chatapp.forgetting.actions.collecting import (
    Chosen,
    Work,
    begin_forgetting,
    find_repeating,
    hold,
    lock_reached,
)
from chatapp.forgetting.actions.deletion import Leftovers, detach_conversation
from chatapp.forgetting.actions.forget import ENTRIES, forget_derived, propose
from chatapp.forgetting.actions.removals import add_to_receipt
from chatapp.forgetting.models import ForgetProposal, ForgetReceipt, Removal, TrashedConversation
from chatapp.forgetting.selectors.derived import entries_going_with, reading_conversations
from chatapp.forgetting.selectors.repeats import find_repeats, said_texts
from chatapp.forgetting.trash.restoring import lock_trashed, return_to_user
from chatapp.long_term.access import lock_shared_entry
from chatapp.long_term.actions.profile import empty_profile
from chatapp.long_term.actions.stale_days import mark_days_stale
from chatapp.long_term.actions.tombstones import make_tombstones, store_tombstones
from chatapp.long_term.models import Consolidation, MemoryEntry
from chatapp.operations.database.access import find_row
from chatapp.operations.database.work_budget import UNBOUNDED, PacedTransactions
from chatapp.recall.actions.indexing import delete_index
from chatapp.recall.actions.removal import hide_sources, remove_sources
from chatapp.runs.models import Run

forgetting_everything = Signal()
"""Sent with `user`, in the first transaction of forgetting everything: features end what would store more."""
everything_forgotten = Signal()
"""Sent with `user`, in the last transaction of forgetting everything: features delete their data."""
conversation_forgotten = Signal()
"""Sent with `user` and `conversation`, in the transaction that detaches it from its user for good."""
MAX_QUOTED = 2_000
"""How many of a conversation's newest messages are searched for elsewhere."""
UPLOADS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class StartedForgetting:
    """Conversations detached from their user, and the work left to do: files first, then rows in pieces."""

    receipt: ForgetReceipt
    removals: tuple[Removal, ...]
    leftovers: tuple[Leftovers, ...] = ()


def forget_conversation(
    *, user: User, conversation_id: str | UUID, now: datetime, for_good: bool = False
) -> StartedForgetting:
    """Detach a conversation from its user and delete its memory entries: nobody sees it once this returns. The result
    has the work left to do. Raise NotFound."""
    counts = _counts(accessible_conversation(user, conversation_id))
    with transaction.atomic():
        begin_forgetting(user.pk)
        conversation = accessible_conversation(user, conversation_id)
        lock_reached(user.pk, {conversation.pk}, entries_going_with(conversation), now)
        conversation = lock_conversation(user, conversation_id)
        receipt = ForgetReceipt.objects.create(user=user, what=ForgetReceipt.What.CONVERSATION, at=now)
        conversation_forgotten.send(None, user=user, conversation=conversation)
        removal = detach_conversation(
            conversation, now=now, forgets_memory=True, forgets=True, for_good=for_good, receipt=receipt
        )
        add_to_receipt(receipt, counts)
    return StartedForgetting(receipt, (removal,))


def read_copies(removal: Removal, now: datetime) -> Work:
    """Return the runs that read a detached conversation, and repetitions of it. Call it before the transaction that
    removes the copies: nobody can read the conversation now, so no new copies are made meanwhile."""
    home, user = removal.home, User.objects.get(pk=removal.user_id)
    newest = Message.objects.filter(conversation=home).order_by("-position")[:MAX_QUOTED]
    said, answered = said_texts(newest)
    repeats = find_repeats(removal.user_id, [*said, *removal.entries.values()], answered=answered)
    sources = Q(sources__source_id__in=Message.objects.filter(conversation=home).values("pk"))
    sources |= Q(sources__source_id__in=list(map(UUID, removal.entries)))
    read = Run.objects.filter(sources, conversation__user__isnull=False).select_related("answer").distinct()
    gone = frozenset({home, *map(UUID, removal.entries)})
    return Work(Chosen(user, now), repeats, runs={run.pk: run for run in read}, also_gone=gone)


def bar_entries(removal: Removal) -> None:
    """Store tombstones of the conversation's entries, so that their sentences are not learned again."""
    if not (removal.raises_tombstones and removal.entries):
        return
    rows = make_tombstones(removal.user_id, removal.entries.values(), removal.created_at)
    with transaction.atomic():
        count = store_tombstones(rows, for_good=removal.for_good, receipt=removal.receipt)
        add_to_receipt(removal.receipt, {"tombstones": count})


@transaction.atomic
def forget_copies_of(removal: Removal, work: Work) -> tuple[Leftovers, ForgetProposal | None]:
    """Remove copies of a detached conversation from other conversations and the profile. Return what is left on disk,
    and the proposal to forget repetitions."""
    user, now = work.user, work.now
    begin_forgetting(user.pk)
    work.follow()
    reading = reading_conversations(Conversation.objects.filter(user=user))
    held = MemoryEntry.objects.filter(pk__in=list(work.derived))
    hold(work, lock_reached(user.pk, work.reached | reading, held, now))
    proposal = propose(user, find_repeating(work), now)
    forget_derived(work)
    add_to_receipt(removal.receipt, work.removed)
    removal.entries = {}
    removal.phase = Removal.Phase.INDEX
    Removal.objects.filter(pk=removal.pk).update(entries={}, phase=removal.phase)
    return Leftovers(offloads=tuple(work.files)), proposal


@transaction.atomic
def unshare_entry(*, entry_id: UUID, now: datetime) -> Work:
    """Remove an entry from a shared memory, with copies in others' conversations. Its user keeps it. Raise NotFound."""
    entry = find_row(MemoryEntry.objects.select_related("user"), entry_id)
    begin_forgetting(entry.user_id)
    work = _take_from_others(entry.user, [entry], now)
    lock_shared_entry(entry_id)
    forget_derived(work)
    MemoryEntry.objects.filter(pk=entry_id).update(scope=None)
    remove_sources([entry_id], owner__scope__isnull=False)
    return work


def _take_from_others(user: User, entries: list[MemoryEntry], now: datetime) -> Work:
    """Collect and lock the copies of these entries that other users have."""
    texts = [
        text for entry in entries for text in (entry.text, *entry.revisions.values_list("text", flat=True))
    ]
    ids = frozenset(entry.pk for entry in entries)
    repeats = find_repeats(user.pk, texts)
    work = Work(Chosen(user, now), repeats, also_gone=ids, spared=user.pk)
    work.follow()
    homes = {entry.conversation_id for entry in entries if entry.conversation_id}
    others = Conversation.objects.filter(
        shared_in__in={entry.shared_in for entry in entries if entry.shared_in}
    ).exclude(user=user)
    reached = work.reached | reading_conversations(others)
    held = MemoryEntry.objects.filter(pk__in=[*ids, *work.derived])
    rows = lock_reached(user.pk, reached | homes, held, now)
    hold(work, [row for row in rows if row.user_id != user.pk])
    return work


def forget_everything(*, user: User, now: datetime, for_good: bool = False) -> StartedForgetting:
    """Forget one conversation after the other, each in its own transaction, then everything that belongs to none.

    What was forgotten before an interruption stays forgotten; a second call does the rest.
    """
    with transaction.atomic():
        begin_forgetting(user.pk)
        receipt = ForgetReceipt.objects.create(user=user, what=ForgetReceipt.What.EVERYTHING, at=now)
        shared = list(MemoryEntry.objects.filter(user=user, shared_in__isnull=False))
        work = _take_from_others(user, shared, now)
        forget_derived(work)
        MemoryEntry.objects.filter(pk__in=[entry.pk for entry in shared]).update(scope=None)
        remove_sources([entry.pk for entry in shared], owner__scope__isnull=False)
        forgetting_everything.send(None, user=user)
    removed, leftovers = work.removed, [Leftovers(offloads=tuple(work.files))]
    removals: list[Removal] = []
    for pk in TrashedConversation.objects.filter(user=user).order_by("pk").values_list("pk", flat=True):
        with transaction.atomic():
            if (trashed := lock_trashed(user, pk)) is not None:
                return_to_user(trashed, discards_removal=True)
    for conversation in list(Conversation.objects.filter(user=user).order_by("pk")):
        counts = _counts(conversation)
        with transaction.atomic():
            entries = entries_going_with(conversation)
            for row in lock_reached(user.pk, [conversation.pk], entries, now):
                removal = detach_conversation(
                    row, now=now, forgets_memory=True, for_good=for_good, receipt=receipt
                )
                removed.update(counts)
                removals.append(removal)
    turns = PacedTransactions(UNBOUNDED)
    _delete_entries(user, removed, now, for_good, receipt, turns)
    leftovers += _delete_uploads(user, removed, turns)
    with turns.hold(), transaction.atomic():
        begin_forgetting(user.pk)
        _lock_all(user, now)
        _delete_entries(user, removed, now, for_good, receipt, turns)  # added meanwhile
        leftovers += _delete_uploads(user, removed, turns)
        _delete_rest(user, removed, now)
        add_to_receipt(receipt, removed)
    return StartedForgetting(receipt, tuple(removals), tuple(leftovers))


def _counts(conversation: Conversation) -> Counter[str]:
    """Count the rows deleted with a conversation, before anything is locked. Files and tombstones are counted later."""
    return Counter(
        conversations=1,
        messages=Message.objects.filter(conversation=conversation).count(),
        entries=entries_going_with(conversation).count(),
        summaries=conversation.compactions.count(),
        events=conversation.events.count(),
        requests=conversation.request_texts.count(),
        offloaded=conversation.offloads.count(),
    )


def _delete_entries(
    user: User,
    removed: Counter[str],
    now: datetime,
    for_good: bool,
    receipt: ForgetReceipt,
    turns: PacedTransactions,
) -> None:
    """Delete the entries that belong to no conversation: written by the user, or left by a deleted conversation."""
    entries = MemoryEntry.objects.filter(user=user)
    while rows := list(entries.order_by("pk")[:ENTRIES]):
        tombstones = make_tombstones(user.pk, [row.text for row in rows], now)
        some = entries.filter(pk__in=[row.pk for row in rows])
        with turns.hold(), transaction.atomic():
            begin_forgetting(user.pk)
            lock_reached(user.pk, {row.conversation_id for row in rows if row.conversation_id}, some, now)
            if dict(some.values_list("pk", "revision")) != {row.pk: row.revision for row in rows}:
                continue  # edited meanwhile: read it again
            mark_days_stale(user.pk, {row.day for row in rows})
            removed["tombstones"] += store_tombstones(tombstones, for_good=for_good, receipt=receipt)
            removed["entries"] += len(rows)
            hide_sources([row.pk for row in rows])
            some.delete()


def _delete_uploads(user: User, removed: Counter[str], turns: PacedTransactions) -> Iterator[Leftovers]:
    uploads = Attachment.objects.filter(user=user)
    while some := dict(uploads.values_list("pk", "sha256")[:UPLOADS_AT_ONCE]):
        with turns.hold(), transaction.atomic():
            uploads.filter(pk__in=some).delete()
        removed["files"] += len(some)
        yield Leftovers(tuple(some.values()))


def _lock_all(user: User, now: datetime) -> None:
    """Lock all conversations, entries and indexes of a user. If a conversation was added meanwhile, release all locks
    and start again: its writer may be waiting for the index already, and locking it now could deadlock."""
    conversations = Conversation.objects.filter(user=user)
    while True:
        with transaction.atomic():
            ids = conversations.values_list("pk", flat=True)
            locked = lock_reached(user.pk, ids, MemoryEntry.objects.filter(user=user), now)
            if conversations.count() == len(locked):
                return
            transaction.set_rollback(True)


def _delete_rest(user: User, removed: Counter[str], now: datetime) -> None:
    """Delete folders, proposals, instructions, profile, data of features and index. The caller holds all locks."""
    Folder.objects.filter(user=user).delete()
    User.objects.filter(pk=user.pk).update(instructions="")
    everything_forgotten.send(None, user=user)
    ForgetProposal.objects.filter(user=user).delete()
    Consolidation.objects.filter(user=user).delete()
    removed["profile_lines"] += empty_profile(user.pk, now)
    delete_index(user.pk)
