"""Forgets and deletes: rows first, then files on disk. After a crash in between, sweeps finish the work."""

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
from chatapp.forgetting.actions.collecting import Chosen
from chatapp.forgetting.actions.deletion import Leftovers
from chatapp.forgetting.actions.forget import ENTRIES, MESSAGES, Done, forget_items
from chatapp.forgetting.actions.forget_all import (
    StartedForgetting,
    forget_conversation,
    forget_everything,
    unshare_entry,
)
from chatapp.forgetting.actions.removals import begin_forgetting_many
from chatapp.forgetting.actions.uploads import delete_upload
from chatapp.forgetting.models import ForgetProposal, ForgetReceipt, Removal
from chatapp.forgetting.removing import Removing, claim, work_on
from chatapp.forgetting.selectors.forgotten import messages_of_day
from chatapp.forgetting.trash.actions import begin_purge
from chatapp.forgetting.trash.selectors import trashed_with_words_of
from chatapp.long_term import files as memory_files
from chatapp.long_term.models import MemoryEntry
from chatapp.long_term.selectors import entries as memory_selectors
from chatapp.operations.database.journal import truncate_journal
from chatapp.operations.database.work_budget import IN_REQUEST, IN_WORKER, Pace
from chatapp.operations.errors import NotFound
from chatapp.runs.actions.injected_messages import withdraw_queued


def remove_leftovers(*left: Leftovers) -> None:
    """Delete files on disk and rewrite stale memory files. Call it after the commit."""
    for one in left:
        attachments.discard_content(one.hashes)
        offloads.delete_files(one.offloads)
    # Rows mark stale memory files, so the sweep writes any that a crash leaves unwritten here.
    memory_files.write_stale()
    # Last: until SQLite's journal is truncated, it contains the deleted text.
    truncate_journal()


def finish(done: Done) -> Done:
    """Delete files and rewrite memory files, after the commit of a forgetting."""
    remove_leftovers(*done.leftovers)
    return done


# --- Forgetting -------------------------------------------------------------------------------------------


def delete_message(user: User, conversation_id: str, message_id: str, *, now: datetime) -> None:
    """Withdraw a message no model call has read, without ending the answer; forget any other. Raise NotFound."""
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
    """Forget the messages and memory entries of a day in the user's time zone. Delete a conversation in the trash as a
    whole if it has messages of that day. Raise NotFound if the day has nothing."""
    zone = user.zone
    start = datetime.combine(day, time.min, zone)
    end = datetime.combine(day + timedelta(days=1), time.min, zone)
    # Separately, because the queries below miss conversations in the trash, which have no user.
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
    """Return the last result, or None if no conversation in the trash has messages of that time."""
    done: Done | None = None
    for conversation_id in trashed_with_words_of(user, start, end):
        begun = begin_purge(user=user, conversation_id=conversation_id, now=now)
        if begun is not None:
            done = finish_begun(begun, now, IN_REQUEST)
    return done


def forget_chosen(
    user: User,
    message_ids: Iterable[UUID],
    entry_ids: Iterable[UUID],
    *,
    what: str,
    now: datetime,
    lines: Mapping[UUID, Sequence[str]] | None = None,
    for_good: bool = False,
    confirms: ForgetProposal | None = None,
) -> Done:
    """Forget messages and entries, in pieces if there are many; of entries in `lines`, only these lines. Raise NotFound
    if none of them exists, or if another process has confirmed `confirms` meanwhile."""
    chosen = Chosen(user, now, frozenset(message_ids), frozenset(entry_ids), lines or {})
    if len(chosen.message_ids) <= MESSAGES and len(chosen.entry_ids) <= ENTRIES:
        return finish(forget_items(chosen, what=what, for_good=for_good, confirms=confirms))
    said = Message.objects.filter(conversation__user=user, pk__in=chosen.message_ids)
    if not said.exists() and not MemoryEntry.objects.filter(user=user, pk__in=chosen.entry_ids).exists():
        raise NotFound
    removal = begin_forgetting_many(chosen, what=what, for_good=for_good, confirms=confirms)
    return finish_many(Removing(removal, now))


def finish_many(work: Removing) -> Done:
    """Forget the messages and entries of a removal. Nothing shows them after this; a worker may clean the index."""
    receipt = work.removal.receipt
    assert receipt is not None
    proposal = _carry_out([work], IN_REQUEST)
    receipt.refresh_from_db()
    return Done(receipt, proposal=proposal)


def take_out_of_shared(entry_id: UUID, *, now: datetime) -> None:
    """Remove an entry from a shared memory. The operator's view is one transaction, so files are deleted after its
    commit. Raise NotFound if the entry is in no shared memory."""
    work = unshare_entry(entry_id=entry_id, now=now)
    transaction.on_commit(partial(remove_leftovers, Leftovers(offloads=tuple(work.files))))


def forget_whole_conversation(
    user: User,
    conversation_id: str | UUID,
    *,
    now: datetime,
    for_good: bool = False,
    pace: Pace = IN_REQUEST,
) -> Done:
    """Forget a conversation. Nothing shows it after this, no search, recall or daily file; a worker deletes the
    remaining rows. Raise NotFound."""
    return finish_begun(
        forget_conversation(user=user, conversation_id=conversation_id, now=now, for_good=for_good), now, pace
    )


def forget_all(user: User, *, now: datetime, for_good: bool = False) -> Done:
    return finish_begun(forget_everything(user=user, now=now, for_good=for_good), now, IN_REQUEST)


def finish_begun(begun: StartedForgetting, now: datetime, pace: Pace) -> Done:
    """Finish a forgetting. `pace` limits only the deletion of hidden rows; a worker does the rest."""
    work = [Removing(removal, now) for removal in begun.removals]
    proposal = _carry_out(work, pace, begun.leftovers)
    begun.receipt.refresh_from_db()
    return Done(begun.receipt, proposal=proposal)


def _carry_out(
    work: Sequence[Removing], pace: Pace, leftovers: Iterable[Leftovers] = ()
) -> ForgetProposal | None:
    """Remove copies and files, then rows for as long as `pace` allows. `leftovers` come from the previous transaction.
    Return the proposal to forget repetitions, if any."""
    # First hide every removal, however long it takes: only rows that nothing shows may wait.
    for one in work:
        one.hide()
    remove_leftovers(*leftovers, *(left for one in work for left in one.leftovers))
    work_on(work, pace)
    truncate_journal()
    return next((one.proposal for one in work if one.proposal), None)


# --- Deletions --------------------------------------------------------------------------------------------


def delete_file(user: User, file_id: str, *, now: datetime) -> None:
    """Delete an uploaded file and everything tools returned from it. Raise NotFound."""
    [file] = accessible_attachments(user, [file_id])
    remove_leftovers(delete_upload(user=user, file=file, now=now))


def finish_removal(removal: Removal, now: datetime, pace: Pace) -> None:
    """Finish a deletion. `pace` limits only the deletion of hidden rows; a worker does the rest."""
    _carry_out([Removing(removal, now)], pace)


def remove_rest(removal_id: int, *, now: datetime) -> None:
    """Continue a removal for a few seconds, and leave the rest to another task. For the worker."""
    work = claim(removal_id, now=now)
    if work is not None:
        _carry_out([work], IN_WORKER)
