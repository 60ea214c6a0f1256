"""Forgets and deletes: rows first, then what lies on disk. After a crash between the two, sweeps do the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from functools import partial
from typing import Protocol
from uuid import UUID

from django.db import transaction

from chatapp.accounts.models import User
from chatapp.conversations.access import accessible_message
from chatapp.conversations.models import Message
from chatapp.conversations.selectors.conversations import idle_conversations
from chatapp.files import attachments, offloads
from chatapp.forgetting.actions import deletion as retention
from chatapp.forgetting.actions.deletion import Detached, Leftovers
from chatapp.forgetting.actions.forget import ENTRIES, MESSAGES, Done, forget_items, leftovers_of
from chatapp.forgetting.actions.removals import begin_forgetting_many
from chatapp.forgetting.actions.whole import Begun, forget_conversation, forget_everything, unshare_entry
from chatapp.forgetting.models import ForgetProposal, ForgetReceipt
from chatapp.forgetting.removing import Removing, claim, go_on_with
from chatapp.forgetting.selectors.forgotten import messages_of_day
from chatapp.forgetting.trash.actions import begin_purge
from chatapp.forgetting.trash.selectors import trashed_with_words_of
from chatapp.long_term import files as memory_files
from chatapp.long_term.models import MemoryEntry
from chatapp.long_term.selectors import entries as memory_selectors
from chatapp.operations.access import parse_id
from chatapp.operations.errors import NotFound
from chatapp.operations.journal import truncate_journal
from chatapp.operations.work_budget import AT_THE_DOOR, BEHIND, Pace
from chatapp.realtime.hub import hub
from chatapp.runs.actions.injected_messages import withdraw_queued


class DetachIdle(Protocol):
    def __call__(self, conversation_id: UUID, *, idle_since: datetime, now: datetime) -> Detached | None: ...


def remove_leftovers(*left: Leftovers) -> None:
    """Write each day once, however many pieces of work changed it, and delete files."""
    memory_files.write_days(dict.fromkeys((one.user_id, day) for one in left for day in one.days))
    for one in left:
        attachments.discard_content(one.hashes)
        offloads.delete_files(one.offloads)


def finish(done: Done) -> Done:
    """Remove what lies outside the database, after the commit that forgot it."""
    _finish(done.ended_runs, done.leftovers)
    return done


def _finish(ended_runs: Iterable[UUID], left: Sequence[Leftovers]) -> None:
    for run_id in ended_runs:
        hub.stop_run(str(run_id))
    remove_leftovers(*left)
    memory_files.write_profiles({leftovers.user_id for leftovers in left})
    truncate_journal()


# --- What is forgotten ------------------------------------------------------------------------------------


def delete_message(user: User, conversation_id: str, message_id: str, *, now: datetime) -> None:
    """Withdraw a message that no model call has read, without ending the answer; forget any other. Raise NotFound."""
    hashes = withdraw_queued(user=user, conversation_id=conversation_id, message_id=message_id, now=now)
    if hashes is None:
        forget_message(user, message_id, now=now, conversation_id=conversation_id)
    else:
        remove_leftovers(Leftovers(user.pk, hashes=hashes))
        truncate_journal()


def forget_message(
    user: User,
    message_id: str | UUID,
    *,
    now: datetime,
    conversation_id: str = "",
    for_good: bool = False,
) -> Done:
    """Forget a message; with a `conversation_id` it must be in that conversation. Raise NotFound."""
    if conversation_id:
        accessible_message(user, conversation_id, message_id)
    chosen, what = [parse_id(message_id)], ForgetReceipt.What.MESSAGE
    return forget_chosen(user, chosen, [], what=what, now=now, for_good=for_good)


def forget_entry(user: User, entry_id: str | UUID, *, now: datetime, for_good: bool = False) -> Done:
    """Forget a memory entry. Raise NotFound."""
    chosen, what = [parse_id(entry_id)], ForgetReceipt.What.ENTRY
    return forget_chosen(user, [], chosen, what=what, now=now, for_good=for_good)


def forget_day(user: User, day: date, *, now: datetime, for_good: bool = False) -> Done:
    """Forget what was said on a day of the user's time zone, and what memory keeps of that day. A conversation in the
    trash in which something was said that day is deleted as a whole. Raise NotFound where there is nothing."""
    zone = memory_selectors.user_zone(user.time_zone)
    start = datetime.combine(day, time.min, zone)
    end = datetime.combine(day + timedelta(days=1), time.min, zone)
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
    transaction.on_commit(partial(_finish, work.ended_runs, leftovers_of(work)))


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
    proposal = _carry_out(work, pace, begun.ended_runs, begun.leftovers)
    begun.receipt.refresh_from_db()
    return Done(begun.receipt, proposal=proposal)


def _carry_out(
    work: Sequence[Removing],
    pace: Pace,
    ended_runs: Iterable[UUID] = (),
    leftovers: Iterable[Leftovers] = (),
) -> ForgetProposal | None:
    """Remove copies elsewhere and what lies on disk, then rows, for as long as `pace` says. `ended_runs` and
    `leftovers` are of the transaction before. Return the proposal to forget what repeats it."""
    ended, left = [*ended_runs], [*leftovers]
    for run_id in ended:
        hub.stop_run(str(run_id))
    for one in work:
        one.hide()
        ended += one.ended_runs
        left += one.leftovers
    _finish(ended, left)
    go_on_with(work, pace)
    truncate_journal()
    return next((one.proposal for one in work if one.proposal), None)


# --- The clean-up -----------------------------------------------------------------------------------------


def delete_idle_conversations(
    *, now: datetime, days: int, pace: Pace = AT_THE_DOOR, detach: DetachIdle = retention.detach_if_idle
) -> int:
    """Take conversations that have been idle for the period of their user's group, else for `days` (0 = never), from
    their users. Return how many. `detach` deletes one or moves it to the trash, where it is still idle."""
    deleted = 0
    for conversation_id, idle_since in idle_conversations(now, days):
        detached = detach(conversation_id, idle_since=idle_since, now=now)
        if detached is not None:
            finish_detached(detached, now, pace)
            deleted += 1
    return deleted


def finish_detached(detached: Detached, now: datetime, pace: Pace) -> None:
    """Carry out what is left of a deletion, in the end for as long as `pace` says."""
    _carry_out([Removing(detached.removal, now)], pace, detached.ended_runs, [detached.leftovers])


def remove_rest(removal_id: int, *, now: datetime, pace: Pace = BEHIND) -> None:
    """Work on a removal for a few seconds; another task does the rest. For the worker."""
    work = claim(removal_id, now=now)
    if work is not None:
        _carry_out([work], pace)
