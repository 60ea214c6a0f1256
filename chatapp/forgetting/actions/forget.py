"""Forgets messages and entries with everything derived from them: a few in one transaction, many in several, after
which the index is cleaned (see `Removal`). Files are returned as leftovers, for `services` to delete after the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from django.db import transaction
from django.dispatch import Signal

from agents.tools.registry import TOOLS_READING_STORED_DATA
from chatapp.accounts.models import User
from chatapp.conversations.models import Message
from chatapp.files.actions import delete_offloads_of_tools, delete_unshared_attachments
from chatapp.forgetting.actions.collecting import (
    Chosen,
    PreparedForgetting,
    Work,
    begin_forgetting,
    find_repeating,
    lock_chosen,
    prepare_forgetting,
    read_said,
    said_by,
    texts_left,
)
from chatapp.forgetting.actions.deletion import Leftovers
from chatapp.forgetting.actions.derived_texts import (
    blank_runs,
    change_entries,
    delete_stored_copies,
    extract_again,
    forget_in_profile,
    make_extracts,
    request_texts,
    retitle,
    sent_profiles,
    texts_of_runs,
    without_copies,
)
from chatapp.forgetting.actions.proposals import note_confirmed
from chatapp.forgetting.actions.removals import add_to_receipt, bar_in_pieces, is_held, note_forgotten
from chatapp.forgetting.models import ForgetProposal, ForgetReceipt, Removal
from chatapp.forgetting.selectors.repeats import said_texts
from chatapp.long_term.actions.stale_days import mark_days_stale
from chatapp.long_term.actions.tombstones import make_tombstones, store_tombstones
from chatapp.long_term.models import MemoryEntry
from chatapp.operations.database.work_budget import PacedTransactions
from chatapp.operations.errors import NotFound
from chatapp.recall.actions.blanking import publish_forgotten
from chatapp.runs.models import Run
from memory.language.sentences import split_sentences, strip_list_mark
from memory.long_term.quotes import Quotes

words_forgotten = Signal()
"""Sent with `work`, in each transaction that removes texts. Features redact their own data about `work.messages`, the
blanked ones, and `work.changed`, which includes those that lost a copy."""
MAX_PROPOSED = 50
MESSAGES, ENTRIES = 20, 80
"""How many messages or entries one transaction forgets at most, to hold the lock for less than 50 ms of CPU time."""


@dataclass(frozen=True, slots=True)
class Done:
    """A receipt, the files left to delete, and the proposal to forget repetitions."""

    receipt: ForgetReceipt
    leftovers: tuple[Leftovers, ...] = ()
    proposal: ForgetProposal | None = None


def forget_items(
    chosen: Chosen, *, what: str, for_good: bool = False, confirms: ForgetProposal | None = None
) -> Done:
    """Forget messages and memory entries with everything that names them as a source. Ignore ids that are missing or
    another user's; raise NotFound if none is left, or if another process has confirmed `confirms` meanwhile.

    `for_good` bars the sentences even if the user asks to remember them later.
    """
    ahead = prepare_forgetting(chosen)
    with transaction.atomic():
        count = begin_forgetting(chosen.user.pk)
        work = lock_chosen(chosen, ahead, forgotten_count=count)
        done = forget_locked(work, what=what, for_good=for_good)
        if confirms is not None:
            note_confirmed(confirms, done.receipt)
        return done


def forget_locked(work: Work, *, what: str, for_good: bool = False) -> Done:
    """Forget what `work` has collected and locked, with a new receipt."""
    receipt = ForgetReceipt.objects.create(user=work.user, what=what, at=work.now)
    work.removed["tombstones"] = _bar(work, receipt, for_good)
    return _forget_work(work, receipt, propose(work.user, _repeating(work), work.now))


def _forget_work(work: Work, receipt: ForgetReceipt, proposal: ForgetProposal | None = None) -> Done:
    hashes = _forget_said(work)
    forget_derived(work)
    add_to_receipt(receipt, work.removed)
    return Done(receipt, (Leftovers(hashes, tuple(work.files)),), proposal)


def forget_pieces(removal: Removal, user: User, now: datetime, turns: PacedTransactions) -> Iterator[Done]:
    """Forget the messages and entries of a removal, one piece per transaction. After an interruption, call it again."""
    parse = cache(UUID)  # each piece needs nearly all ids
    said = read_said(_piece_of(removal, user, now, parse, messages=None, entries=None))
    # Bar the sentences before the first piece, so that a worker does not learn them again between pieces.
    bar_in_pieces(removal, said.tombstones, turns)
    while removal.phase == Removal.Phase.CHOSEN:
        piece = _piece_of(removal, user, now, parse)
        try:
            ahead = prepare_forgetting(piece, said)
            with turns.hold(), transaction.atomic():
                if (done := _forget_piece(removal, piece, ahead)) is None:
                    return
            yield done
        except NotFound:  # another process has forgotten this piece meanwhile
            with turns.hold(), transaction.atomic():
                begin_forgetting(user.pk)
                # Reload its progress, because the other process may have noted more than this piece.
                if is_held(removal):
                    note_forgotten(removal, piece.message_ids | piece.entry_ids)


def _piece_of(
    removal: Removal,
    user: User,
    now: datetime,
    parse: Callable[[str], UUID],
    *,
    messages: int | None = MESSAGES,
    entries: int | None = ENTRIES,
) -> Chosen:
    """Return the next messages of a removal, or entries if no messages are left. None as limits: all of both."""
    chosen = removal.chosen
    message_ids = frozenset(map(parse, chosen["messages"][:messages]))
    entry_ids = frozenset(map(parse, [] if message_ids and messages else chosen["entries"][:entries]))
    gone = chosen.get("sources", [])
    together = frozenset(map(parse, [*chosen["messages"], *chosen["entries"], *gone]))
    redacted = frozenset(map(parse, [*gone, *chosen.get("untold", ()), *chosen.get("remade", ())]))
    lines = {parse(pk): some for pk, some in chosen.get("lines", {}).items() if parse(pk) in entry_ids}
    return Chosen(user, now, message_ids, entry_ids, lines, together, redacted)


def _forget_piece(removal: Removal, piece: Chosen, ahead: PreparedForgetting) -> Done | None:
    """Forget one piece. Return None if another process has forgotten the rest."""
    count = begin_forgetting(piece.user.pk)
    if not is_held(removal):
        return None
    work = lock_chosen(piece, ahead, forgotten_count=count)
    work.removal = removal
    assert removal.receipt is not None
    repeats = _repeating(work)
    done = _forget_work(work, removal.receipt)
    note_forgotten(
        removal,
        piece.message_ids | piece.entry_ids,
        sources=[*work.messages, *work.entries],
        conversation_ids=work.homes,
        changed=work.changed,
        remade=work.remade,
        repeating=repeats,
    )
    if removal.phase == Removal.Phase.CHOSEN:
        return done
    return replace(done, proposal=propose(work.user, [*map(UUID, removal.chosen["repeating"])], work.now))


def _bar(work: Work, receipt: ForgetReceipt, for_good: bool) -> int:
    """Store tombstones of the forgotten sentences, so that they are not learned again. Return how many."""
    if work.ahead is not None and _revisions(work.ahead.said.entries) == _revisions(work.entries):
        rows = work.ahead.said.tombstones
    else:
        said, _ = said_texts(work.messages.values())
        learned = [text for entry in work.entries.values() for text in said_by(entry, work.chosen.lines)]
        rows = make_tombstones(work.user.pk, [*said, *learned], work.now)
    return store_tombstones(rows, receipt=receipt, for_good=for_good)


def _revisions(entries: Mapping[UUID, MemoryEntry]) -> dict[UUID, int]:
    return {pk: entry.revision for pk, entry in entries.items()}


def _forget_said(work: Work) -> tuple[str, ...]:
    """Remove the forgotten texts themselves. Return the hashes of files that may be unused now."""
    hashes = delete_unshared_attachments(work.messages) if work.messages else ()
    work.blank(work.messages)
    work.blank(
        work.cut, {pk: _without_quotes(row.parts, work.repeats.quotes) for pk, row in work.cut.items()}
    )
    lines = work.chosen.lines
    left = {
        pk: _without_lines(entry.text, lines[pk]) if pk in lines else "" for pk, entry in work.entries.items()
    }
    # A forgetting in pieces cleans the index later, but not of an entry that keeps some lines.
    _change(work, work.entries.values(), left, hides=work.removal is not None and not lines)
    work.removed.update(
        messages=len(work.messages),
        messages_redacted=len(work.cut),
        files=len(hashes),
        entries=len(work.entries) - len(lines),
        entries_redacted=len(lines),
    )
    return hashes


def _change(work: Work, entries: Collection[Any], texts: dict[UUID, str], *, hides: bool = False) -> None:
    for entry in entries:
        work.days.setdefault(entry.user_id, set()).add(entry.day)
    change_entries(entries, texts, hides=hides)


def _without_quotes(parts: Sequence[dict[str, Any]], quotes: Quotes) -> list[dict[str, Any]]:
    texts = [{**part, "text": quotes.take_out(part["text"])} for part in parts if "text" in part]
    others = [part for part in parts if "text" not in part]
    return [*(part for part in texts if part["text"].strip()), *others]


def _without_lines(text: str, lines: Collection[str]) -> str:
    gone = {strip_list_mark(line) for line in lines}
    left = "".join(line for line in text.splitlines(keepends=True) if strip_list_mark(line) not in gone)
    return "".join(one for one in split_sentences(left) if strip_list_mark(one) not in gone).strip()


# --- Derived rows --------------------------------------------------------------------------------------------


def forget_derived(work: Work) -> None:
    """Remove or rewrite everything that names the forgotten rows as a source, in the locked conversations."""
    is_copy = work.repeats.may_repeat
    _forget_in_runs(work)
    texts, summaries = _texts_left(work), work.summaries()
    extracts = _extracts(work, summaries)
    is_new = work.is_new
    _change(work, [row for row in work.derived.values() if is_new(row.pk, row.text, texts)], texts)
    changed = [row for row in summaries if is_new(row.pk, row.summary, extracts)]
    extract_again(changed, extracts, work.now, is_copy)
    work.removed["summaries_redacted"] += len({row.pk for row in summaries} - work.chosen.redacted)
    work.removed["messages_redacted"] += len(work.copied)
    work.removed["entries_redacted"] += len(work.derived.keys() - work.chosen.redacted)
    work.remade |= {*work.derived, *(row.pk for row in summaries)}
    for conversation in work.conversations.values():
        here = [row for row in work.changed.values() if row.conversation_id == conversation.pk]
        retitle(conversation, work.now, is_copy, here)
        # A forgetting in pieces sends events after the last piece: one per message takes long under the lock.
        if work.removal is None:
            publish_forgotten(conversation, here, work.now)
    words_forgotten.send(None, work=work)
    gone = (*work.entries, *work.derived, *work.also_gone)
    users = {work.user.pk, *(row.owner_id for row in work.conversations.values())} - {work.spared}
    for user_id in sorted(pk for pk in users if pk):
        count = forget_in_profile(user_id, gone, work.repeats.quotes.are_in, work.now)
        if count:
            work.removed["requests"] += sent_profiles(user_id).delete()[0]
        if user_id == work.user.pk:
            work.removed["profile_lines"] += count
    for user_id, days in work.days.items():
        mark_days_stale(user_id, days)


def _texts_left(work: Work) -> dict[UUID, str]:
    known = work.ahead.texts if work.ahead else {}
    if all(known.get(pk, (0, ""))[0] == entry.revision for pk, entry in work.derived.items()):
        return {pk: known[pk][1] for pk in work.derived}
    return texts_left(work)


def _extracts(work: Work, summaries: Sequence[Any]) -> dict[UUID, str]:
    known = work.ahead.extracts if work.ahead else {}
    if all(known.get(row.pk, (None, ""))[0] == row.summary for row in summaries):
        return {row.pk: known[row.pk][1] for row in summaries}
    return make_extracts(summaries, work.gone)


def _forget_in_runs(work: Work) -> None:
    if not (work.changed or work.runs):
        return
    is_copy = work.repeats.may_repeat
    answering = set(Run.objects.filter(answer__in=work.messages).values_list("pk", flat=True))
    work.returned += blank_runs({*work.runs} - answering, answering, is_copy)
    work.blank(work.copied, {pk: without_copies(row.parts, is_copy) for pk, row in work.copied.items()})
    homes = work.homes
    elsewhere = [pk for pk, run in work.runs.items() if run.conversation_id not in homes]
    copied_in = {run.conversation_id for run in work.runs.values()}
    work.files += delete_offloads_of_tools(homes | copied_in, TOOLS_READING_STORED_DATA)
    work.files += delete_stored_copies(list(work.conversations), work.returned)
    work.removed["offloaded"] += len(work.files)
    if work.removal is None:
        work.removed["requests"] += request_texts(homes).delete()[0]
    if elsewhere:
        work.removed["requests"] += texts_of_runs(elsewhere).delete()[0]


# --- Repetitions to propose ------------------------------------------------------------------------------------


def _repeating(work: Work) -> frozenset[UUID]:
    """Return the messages to propose to the user."""
    ahead = work.ahead
    return ahead.repeating if ahead and ahead.runs == work.runs.keys() else find_repeating(work)


def propose(user: User, message_ids: Collection[UUID], now: datetime) -> ForgetProposal | None:
    """Propose to forget these messages, at most the newest `MAX_PROPOSED` that still have content; None if none has."""
    rows = Message.objects.filter(pk__in=message_ids, conversation__user=user).exclude(parts=[])
    newest = rows.order_by("-created_at", "-position", "-pk").values_list("pk", flat=True)[:MAX_PROPOSED]
    items = [{"kind": "message", "id": str(pk)} for pk in newest]
    return ForgetProposal.objects.create(user=user, items=items[::-1], created_at=now) if items else None
