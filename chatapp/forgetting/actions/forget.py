"""Forget messages and entries with all that was made of them, in one transaction. What lies outside the database is
returned as leftovers, for `services` to remove after the commit; of many messages the index is cleaned behind it, in
pieces (see `Removal`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from agents.tools.registry import READING_WHAT_IS_KEPT
from chatapp.accounts.models import User
from chatapp.conversations import message_values
from chatapp.conversations.models import Message
from chatapp.files.actions import delete_offloads_of_tools, delete_unshared_attachments
from chatapp.forgetting.actions.collecting import (
    Lines,
    Work,
    begin_forgetting,
    lock_chosen,
    read_ahead,
    said_in,
    texts_left,
)
from chatapp.forgetting.actions.copies import (
    blank_runs,
    delete_stored_copies,
    request_texts,
    sent_profiles,
    texts_of_runs,
    without_copies,
)
from chatapp.forgetting.actions.deletion import Leftovers
from chatapp.forgetting.actions.remaking import (
    change_entries,
    extract_again,
    forget_in_profile,
    make_extracts,
    retitle,
)
from chatapp.forgetting.actions.removals import (
    add_to_receipt,
    bar_in_pieces,
    begin_forgetting_many,
    leave_behind,
)
from chatapp.forgetting.models import ForgetProposal, ForgetReceipt, Removal
from chatapp.forgetting.selectors.repeats import said_texts
from chatapp.long_term.actions import entries as memory_actions
from chatapp.long_term.actions.tombstones import make_tombstones, store_tombstones
from chatapp.recall.actions.blanking import tell_forgotten
from chatapp.runs.models import Run
from memory.quotes import Quotes
from memory.sentences import bare_sentence, split_sentences

MAX_PROPOSED = 50
AT_ONCE = 50
"""Of more messages and entries only what holds words goes in one transaction."""


@dataclass(frozen=True, slots=True)
class Done:
    """A receipt, what is left to do outside the database, and the proposal to forget what repeats it."""

    receipt: ForgetReceipt
    leftovers: tuple[Leftovers, ...]
    ended_runs: tuple[UUID, ...] = ()
    proposal: ForgetProposal | None = None
    removal: Removal | None = None
    """What is left to do in the database."""


def forget_items(
    *,
    user: User,
    message_ids: Iterable[UUID],
    entry_ids: Iterable[UUID],
    what: str,
    now: datetime,
    lines: Lines | None = None,
    asked_in: UUID | None = None,
    for_good: bool = False,
    removal: Removal | None = None,
) -> Done:
    """Messages and memory entries, with everything that names them as a source. Ids that are not the user's, or gone,
    are passed over; NotFound where none is left.

    Of an entry with `lines` only these go. `asked_in` is the message that wished for it, which goes with its answer;
    `for_good` bars it even when its user asks to remember it. More than AT_ONCE become a `removal` first, or are one
    that was cut short: the sweep forgets them, too.
    """
    chosen, entry_ids, lines = {*message_ids}, list(entry_ids), lines or {}
    if asked_in:
        chosen |= {asked_in, *Message.objects.filter(parent=asked_in).values_list("pk", flat=True)}
    ahead = read_ahead(user, chosen, entry_ids, lines, now)
    if removal is None and not lines and len(chosen) + len(entry_ids) > AT_ONCE:
        removal = begin_forgetting_many(
            user=user, message_ids=chosen, entry_ids=entry_ids, what=what, for_good=for_good, now=now
        )
    if removal is not None:
        bar_in_pieces(removal, ahead.tombstones)
    with transaction.atomic():
        count = begin_forgetting(user.pk)
        work = lock_chosen(user, chosen, entry_ids, lines, now, ahead, forgotten_count=count)
        work.removal = removal
        return forget_locked(work, what=what, proposes=asked_in is None, for_good=for_good)


def forget_locked(work: Work, *, what: str, proposes: bool = True, for_good: bool = False) -> Done:
    removal = work.removal
    if removal is not None and removal.receipt is not None:
        receipt = removal.receipt
    else:
        receipt = ForgetReceipt.objects.create(user=work.user, what=what, at=work.now)
        work.removed["tombstones"] = _bar(work, receipt, for_good)
    proposal = propose(work) if proposes else None
    hashes = _forget_said(work)
    forget_derived(work)
    add_to_receipt(receipt, work.removed)
    if removal is not None:
        leave_behind(removal, [*work.messages, *work.entries], work.homes, work.changed)
    return Done(receipt, leftovers_of(work, hashes), tuple(work.ended_runs), proposal, removal)


def _bar(work: Work, receipt: ForgetReceipt, for_good: bool) -> int:
    """It is not learned again. Return how many sentences that bars."""
    revisions = {pk: entry.revision for pk, entry in work.entries.items()}
    if work.ahead is not None and work.ahead.revisions == revisions:
        rows = work.ahead.tombstones
    else:
        said, _ = said_texts(work.messages.values())
        learned = [text for entry in work.entries.values() for text in work.said_by(entry)]
        rows = make_tombstones(work.user.pk, [*said, *learned], work.now)
    return store_tombstones(rows, receipt=receipt, for_good=for_good)


def leftovers_of(work: Work, hashes: tuple[str, ...] = ()) -> tuple[Leftovers, ...]:
    """Return what is left on disk, by user."""
    own = Leftovers(work.user.pk, tuple(sorted(work.days.pop(work.user.pk, ()))), hashes, tuple(work.files))
    return (own, *(Leftovers(user_id, tuple(sorted(days))) for user_id, days in work.days.items()))


def _forget_said(work: Work) -> tuple[str, ...]:
    """The words themselves. Return the hashes of bytes that nobody may need now."""
    hashes = delete_unshared_attachments(work.messages) if work.messages else ()
    work.blank(work.messages)
    work.blank(
        work.cut, {pk: _without_quotes(row.parts, work.repeats.quotes) for pk, row in work.cut.items()}
    )
    left = {
        pk: _without_lines(entry.text, work.lines[pk]) if pk in work.lines else ""
        for pk, entry in work.entries.items()
    }
    _change(work, work.entries.values(), left, hides=work.removal is not None)
    work.removed.update(
        messages=len(work.messages),
        messages_redacted=len(work.cut),
        files=len(hashes),
        entries=len(work.entries) - len(work.lines),
        entries_redacted=len(work.lines),
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
    gone = {bare_sentence(line) for line in lines}
    left = "".join(line for line in text.splitlines(keepends=True) if bare_sentence(line) not in gone)
    return "".join(one for one in split_sentences(left) if bare_sentence(one) not in gone).strip()


# --- What was made of it -------------------------------------------------------------------------------------


def forget_derived(work: Work) -> None:
    """All that names it as a source, in the conversations that are locked."""
    is_copy = work.repeats.are_near
    _forget_in_runs(work)
    _change(work, work.derived.values(), _texts_left(work))
    summaries = work.summaries()
    work.removed["summaries_redacted"] += extract_again(
        summaries, _extracts(work, summaries), work.now, is_copy
    )
    work.removed["messages_redacted"] += len(work.copied)
    work.removed["entries_redacted"] += len(work.derived)
    for conversation in work.conversations.values():
        here = [row for row in work.changed.values() if row.conversation_id == conversation.pk]
        retitle(conversation, work.now, is_copy, here)
        if work.removal is None:
            tell_forgotten(conversation, here, work.now)
    gone = (*work.entries, *work.derived, *work.also_gone)
    users = {work.user.pk, *(row.owner_id for row in work.conversations.values())} - {work.spared}
    for user_id in sorted(pk for pk in users if pk):
        count = forget_in_profile(user_id, gone, work.repeats.quotes.are_in, work.now)
        if count:
            work.removed["requests"] += sent_profiles(user_id).delete()[0]
        if user_id == work.user.pk:
            work.removed["profile_lines"] += count
    for user_id, days in work.days.items():
        memory_actions.mark_days_stale(user_id, days)


def _texts_left(work: Work) -> dict[UUID, str]:
    known = work.ahead.texts if work.ahead else {}
    if all(known.get(pk, (0, ""))[0] == entry.revision for pk, entry in work.derived.items()):
        return {pk: known[pk][1] for pk in work.derived}
    return texts_left(work)


def _extracts(work: Work, summaries: Sequence[Any]) -> dict[UUID, str]:
    known = work.ahead.extracts if work.ahead else {}
    if all(known.get(row.pk, (None, ""))[0] == row.summary for row in summaries):
        return {row.pk: known[row.pk][1] for row in summaries}
    return make_extracts(summaries, ())


def _forget_in_runs(work: Work) -> None:
    is_copy = work.repeats.are_near
    answering = set(Run.objects.filter(answer__in=work.messages).values_list("pk", flat=True))
    work.returned += blank_runs({*work.runs} - answering, answering, is_copy)
    work.blank(work.copied, {pk: without_copies(row.parts, is_copy) for pk, row in work.copied.items()})
    homes = work.homes
    elsewhere = [pk for pk, run in work.runs.items() if run.conversation_id not in homes]
    copied_in = {run.conversation_id for run in work.runs.values()}
    work.files += delete_offloads_of_tools(homes | copied_in, READING_WHAT_IS_KEPT)
    work.files += delete_stored_copies(list(work.conversations), work.returned)
    work.removed["offloaded"] += len(work.files)
    if work.removal is None:
        work.removed["requests"] += request_texts(homes).delete()[0]
    work.removed["requests"] += texts_of_runs(elsewhere).delete()[0]


# --- What the user is asked ------------------------------------------------------------------------------------


def propose(work: Work) -> ForgetProposal | None:
    """Answers of runs that had recalled it, and what repeats it and was not chosen."""
    ids = {one.message_id for one in work.repeats.found if one.message_id}
    ids |= {row.pk for row in said_in(work.entries.values(), work.repeats.alike)}
    answers = {run.answer_id for run in work.runs.values() if run.question_id not in work.messages}
    near = {run.answer_id for run in work.runs.values()} - answers
    children = Message.objects.filter(parent__in=work.messages, role=Message.Role.ASSISTANT)
    others = (
        *Message.objects.filter(pk__in=near - {*work.messages}),
        *children.exclude(pk__in=work.messages),
    )
    answers |= {row.pk for row in others if work.repeats.are_near(message_values.text_of(row.parts))}
    rows = Message.objects.filter(pk__in=ids | answers, conversation__user=work.user).exclude(parts=[])
    newest = rows.exclude(pk__in=[*work.messages, *work.cut]).order_by("-created_at", "-position", "-pk")
    items = [{"kind": "message", "id": str(pk)} for pk in newest.values_list("pk", flat=True)[:MAX_PROPOSED]]
    if not items:
        return None
    return ForgetProposal.objects.create(user=work.user, items=items[::-1], created_at=work.now)
