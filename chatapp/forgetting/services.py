"""Forgets and deletes: rows first, then what lies on disk. After a crash between the two, sweeps do the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from functools import partial
from uuid import UUID

from django.db import transaction

from chatapp.accounts.models import User
from chatapp.conversations.access import accessible_message
from chatapp.conversations.models import Message
from chatapp.files import attachments, offloads
from chatapp.files.selectors import accessible_attachments
from chatapp.forgetting.actions.deletion import Detached, Leftovers
from chatapp.forgetting.actions.forget import ENTRIES, MESSAGES, Done, forget_items
from chatapp.forgetting.actions.removals import begin_forgetting_many
from chatapp.forgetting.actions.uploads import delete_upload
from chatapp.forgetting.actions.whole import Begun, forget_conversation, forget_everything, unshare_entry
from chatapp.forgetting.models import ForgetProposal, ForgetReceipt
from chatapp.forgetting.removing import Removing, claim, go_on_with
from chatapp.forgetting.selectors.forgotten import messages_of_day
from chatapp.forgetting.trash.actions import begin_purge
from chatapp.forgetting.trash.selectors import trashed_with_words_of
from chatapp.long_term import files as memory_files
from chatapp.long_term.models import MemoryEntry
from chatapp.long_term.selectors import entries as memory_selectors
from chatapp.operations.errors import NotFound
from chatapp.operations.journal import truncate_journal
from chatapp.operations.work_budget import AT_THE_DOOR, BEHIND, Pace
from chatapp.runs.actions.injected_messages import withdraw_queued


def remove_leftovers(*left: Leftovers) -> None:
    """Delete files, and write those of the memory that show what is gone. To be called after the commit."""
    for one in left:
        attachments.discard_content(one.hashes)
        offloads.delete_files(one.offloads)
    # Which files are behind is marked in their rows: what a crash leaves unwritten here, the sweep writes.
    memory_files.write_stale()
    # Last: until the log of the database is emptied, it holds the pages as they were.
    truncate_journal()


def finish(done: Done) -> Done:
    """Remove what lies outside the database, after the commit that forgot it."""
    remove_leftovers(*done.leftovers)
    return done


# --- What is forgotten ------------------------------------------------------------------------------------


def delete_message(user: User, conversation_id: str, message_id: str, *, now: datetime) -> None:
    """Withdraw a message that no model call has read, without ending the answer; forget any other. Raise NotFound."""
    hashes = withdraw_queued(user=user, conversation_id=conversation_id, message_id=message_id, now=now)
    if hashes is None:
        forget_message(user, accessible_message(user, conversation_id, message_id).pk, now=now)
    else:
        remove_leftovers(Leftovers(hashes))


def forget_message(user: User, message_id: UUID, *, now: datetime, for_good: bool = False) -> Done:
    """Forget a message. Raise NotFound."""
    what = ForgetReceipt.What.MESSAGE
    return forget_chosen(user, [message_id], [], what=what, now=now, for_good=for_good)


def forget_entry(user: User, entry_id: UUID, *, now: datetime, for_good: bool = False) -> Done:
    """Forget a memory entry. Raise NotFound."""
    what = ForgetReceipt.What.ENTRY
    return forget_chosen(user, [], [entry_id], what=what, now=now, for_good=for_good)


def forget_day(user: User, day: date, *, now: datetime, for_good: bool = False) -> Done:
    """Forget what was said on a day of the user's time zone, and what memory keeps of that day. A conversation in the
    trash in which something was said that day is deleted as a whole. Raise NotFound where there is nothing."""
    zone = user.zone
    start = datetime.combine(day, time.min, zone)
    end = datetime.combine(day + timedelta(days=1), time.min, zone)
    # Apart from the rest: what is in the trash has no user, so that nothing below finds it.
    purged = _purge_said_between(user, start, end, now)
    said = messages_of_day(user, start, end)
    entries = memory_selectors.day_entry_ids(user.pk, day)
    try:
        return forget_chosen(user, said, entries, what=ForgetReceipt.What.DAY, now=now, for_good=for_good)
    except NotFound:
        if purged is None:
            raise
        return purged


def _purge_said_between(user: User, start: datetime, end: datetime, now: datetime) -> Done | None:
    """Return what was done last; None where nothing in the trash was said then."""
    done: Done | None = None
    for conversation_id in trashed_with_words_of(user, start, end):
        begun = begin_purge(user=user, conversation_id=conversation_id, now=now)
        if begun is not None:
            done = finish_begun(begun, now, AT_THE_DOOR)
    return done


def forget_chosen(
    user: User,
    message_ids: Iterable[UUID],
    entry_ids: Iterable[UUID],
    *,
    what: str,
    now: datetime,
    lines: Mapping[UUID, Sequence[str]] | None = None,
    asked_in: UUID | None = None,
    for_good: bool = False,
) -> Done:
    """Forget messages and entries, many of them in pieces. Raise NotFound where none of them is there."""
    messages, entries = {*message_ids}, {*entry_ids}
    # A removal in pieces notes whole messages and entries: single lines, and the wish in a chat, go in one transaction.
    if lines or asked_in or (len(messages) <= MESSAGES and len(entries) <= ENTRIES):
        return finish(
            forget_items(
                user=user,
                message_ids=messages,
                entry_ids=entries,
                what=what,
                now=now,
                lines=lines,
                asked_in=asked_in,
                for_good=for_good,
            )
        )
    said = Message.objects.filter(conversation__user=user, pk__in=messages)
    if not said.exists() and not MemoryEntry.objects.filter(user=user, pk__in=entries).exists():
        raise NotFound
    removal = begin_forgetting_many(
        user=user, message_ids=messages, entry_ids=entries, what=what, for_good=for_good, now=now
    )
    return finish_many(Removing(removal, now))


def finish_many(work: Removing) -> Done:
    """Forget the messages and entries of a removal: nothing shows them once this returns. A worker deletes what is left
    of them in the index."""
    receipt = work.removal.receipt
    assert receipt is not None
    proposal = _carry_out([work], AT_THE_DOOR)
    receipt.refresh_from_db()
    return Done(receipt, proposal=proposal)


def take_out_of_shared(entry_id: UUID, *, now: datetime) -> None:
    """Take an entry out of a shared memory. For an operator's view, which is one transaction: files follow its commit.
    Raise NotFound where the entry is in no shared memory."""
    work = unshare_entry(entry_id=entry_id, now=now)
    transaction.on_commit(partial(remove_leftovers, Leftovers(offloads=tuple(work.files))))


def forget_whole_conversation(
    user: User,
    conversation_id: str | UUID,
    *,
    now: datetime,
    for_good: bool = False,
    pace: Pace = AT_THE_DOOR,
) -> Done:
    """Forget a conversation: nothing shows it once this returns, no search, recall or daily file. A worker deletes the
    rows that are left. Raise NotFound."""
    return finish_begun(
        forget_conversation(user=user, conversation_id=conversation_id, now=now, for_good=for_good), now, pace
    )


def forget_all(user: User, *, now: datetime, for_good: bool = False) -> Done:
    return finish_begun(forget_everything(user=user, now=now, for_good=for_good), now, AT_THE_DOOR)


def finish_begun(begun: Begun, now: datetime, pace: Pace) -> Done:
    """Carry out what is left of a forgetting, in the end for as long as `pace` says."""
    work = [Removing(removal, now) for removal in begun.removals]
    proposal = _carry_out(work, pace, begun.leftovers)
    begun.receipt.refresh_from_db()
    return Done(begun.receipt, proposal=proposal)


def _carry_out(
    work: Sequence[Removing], pace: Pace, leftovers: Iterable[Leftovers] = ()
) -> ForgetProposal | None:
    """Remove copies elsewhere and what lies on disk, then rows, for as long as `pace` says. `leftovers` are of the
    transaction before. Return the proposal to forget what repeats it."""
    # Of all removals first what others show of them, whatever time that takes: only rows that nobody sees may wait.
    for one in work:
        one.hide()
    remove_leftovers(*leftovers, *(left for one in work for left in one.leftovers))
    go_on_with(work, pace)
    truncate_journal()
    return next((one.proposal for one in work if one.proposal), None)


# --- Deletions --------------------------------------------------------------------------------------------


def delete_file(user: User, file_id: str, *, now: datetime) -> None:
    """Delete an uploaded file, and what tools returned of it. Raise NotFound."""
    [file] = accessible_attachments(user, [file_id])
    remove_leftovers(delete_upload(user=user, file=file, now=now))


def finish_detached(detached: Detached, now: datetime, pace: Pace) -> None:
    """Carry out what is left of a deletion, in the end for as long as `pace` says."""
    _carry_out([Removing(detached.removal, now)], pace)


def remove_rest(removal_id: int, *, now: datetime, pace: Pace = BEHIND) -> None:
    """Work on a removal for a few seconds; another task does the rest. For the worker."""
    work = claim(removal_id, now=now)
    if work is not None:
        _carry_out([work], pace)
