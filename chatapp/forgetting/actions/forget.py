"""Forgetting, each time in one transaction: what was said or kept, all that was made of it, and the right to learn it
again. What lies outside the database is returned as leftovers, for `forgetting` to remove after the commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import chain
from uuid import UUID

from django.db import transaction

from chatapp.accounts.models import User
from chatapp.conversations import message_values
from chatapp.conversations.actions.conversations import title_from
from chatapp.conversations.models import Conversation, Message
from chatapp.files.actions import delete_all_offloads, delete_repeating_offloads, delete_unshared_attachments
from chatapp.files.models import Offload
from chatapp.files.selectors import text_offloads
from chatapp.forgetting.actions import traces
from chatapp.forgetting.actions.calls import empty_calls, empty_plans, found_alone, with_belongings
from chatapp.forgetting.actions.clock import begin_forgetting
from chatapp.forgetting.actions.deletion import Leftovers
from chatapp.forgetting.actions.profile import redact_profile
from chatapp.forgetting.actions.reach import lock_reach
from chatapp.forgetting.actions.shared import forget_shared, told_to_others
from chatapp.forgetting.models import ForgetProposal, ForgetReceipt
from chatapp.forgetting.selectors.citing import citing_conversations, entries_made_of, saying_the_same
from chatapp.forgetting.selectors.forgotten import (
    conversations_of,
    offloading_conversations,
    recitations,
    said_in,
    words_said_elsewhere,
)
from chatapp.long_term.actions import entries as memory_actions
from chatapp.long_term.actions.tombstones import raise_tombstones
from chatapp.long_term.models import MemoryEntry
from chatapp.operations.errors import NotFound
from chatapp.recall.actions import indexing as search_actions
from chatapp.recall.analysis import vocabulary
from memory.redaction import Forgotten

MAX_RECITATIONS = 50


@dataclass(frozen=True, slots=True)
class Done:
    """A receipt, what is left to do outside the database, and the proposal to forget what repeats it."""

    receipt: ForgetReceipt
    leftovers: tuple[Leftovers, ...]
    ended_runs: tuple[UUID, ...] = ()
    proposal: ForgetProposal | None = None


@dataclass(slots=True)
class Work:
    """One forgetting under way: what goes, where, and what is counted for the receipt."""

    user: User
    now: datetime
    messages: dict[UUID, Message]
    entries: list[MemoryEntry]
    lines: dict[UUID, Sequence[str]]
    homes: set[UUID] = field(default_factory=set)
    conversations: list[Conversation] = field(default_factory=list)
    of_others: list[Conversation] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    """What tools alone told: made of it goes, but nobody said it, so it is not barred for ever."""
    changed: dict[UUID, Message] = field(default_factory=dict)
    days: set[date] = field(default_factory=set)
    removed: Counter[str] = field(default_factory=Counter)
    ended_runs: list[UUID] = field(default_factory=list)

    def said_by(self, entry: MemoryEntry) -> Sequence[str]:
        """What is forgotten of it: what it says, and said before an edit, or only the chosen lines."""
        if entry.pk in self.lines:
            return self.lines[entry.pk]
        return [entry.text, *entry.revisions.values_list("text", flat=True)]

    @property
    def said_first(self) -> datetime:
        """When the earliest of it was said: what was said before cannot come from it."""
        sources = (self.messages, self.changed)
        said = [row.created_at for rows in sources for row in rows.values()]
        return min([*said, *(entry.created_at for entry in self.entries)])

    @property
    def gone(self) -> set[UUID]:
        return {*self.messages, *(entry.pk for entry in self.entries)}


def forget_items(
    *,
    user: User,
    message_ids: Iterable[UUID],
    entry_ids: Iterable[UUID],
    what: str,
    now: datetime,
    lines: Mapping[UUID, Sequence[str]] | None = None,
    asked_in: UUID | None = None,
    for_good: bool = False,
    offloads: Collection[UUID] = (),
) -> Done:
    """Messages and memory entries, with everything that says so because of them. Ids that are not the user's, or
    gone, are passed over; NotFound where none is left.

    An entry takes with it the sentences it was made of; of one with `lines` only these go. `asked_in` is the message
    that wished for it; `for_good` bars it even when its user asks to remember it; `offloads` are those that were
    found to say it, of `repeating_offloads`.
    """
    with transaction.atomic():
        begin_forgetting(user.pk)
        chosen = {*message_ids, *([asked_in] if asked_in else [])}
        work = lock_chosen(user, chosen, entry_ids, lines or {}, now)
        return forget_locked(work, what=what, asked_in=asked_in, for_good=for_good, offloads=offloads)


def lock_chosen(
    user: User,
    message_ids: Collection[UUID],
    entry_ids: Iterable[UUID],
    lines: Mapping[UUID, Sequence[str]],
    now: datetime,
    *,
    beside: Collection[MemoryEntry] = (),
) -> Work:
    """Called once a forgetting has begun. Everything that is read and written from here on is locked: what is chosen,
    its own conversations, those that cite it, and the entries `beside` it, which are to be changed in the same
    transaction. Raises NotFound."""
    work = _choose(user, message_ids, entry_ids, lines, now)
    if not work.gone:
        raise NotFound
    rows = MemoryEntry.objects.filter(user=user, pk__in=[row.pk for row in work.entries])
    held = MemoryEntry.objects.filter(user=user, pk__in=[row.pk for row in [*work.entries, *beside]])
    while True:
        reach = _reach_of(work, beside)
        citing = citing_conversations(conversations_of(user.pk), reach.gone, reach.texts)
        told = told_to_others(user.pk, reach.gone, reach.texts)
        with transaction.atomic():
            conversations = lock_reach(user.pk, reach.homes | citing | told, held, now)
            work.entries = list(rows.all())
            if _reach_of(work, beside).homes <= reach.homes:
                break
            # Said once more meanwhile: whatever was locked is let go, to lock all of it in order.
            transaction.set_rollback(True)
    work.homes = reach.homes
    work.conversations = [row for row in conversations if row.user_id == user.pk]
    work.of_others = [row for row in conversations if row.user_id != user.pk]
    for conversation in work.conversations:
        work.ended_runs += traces.stop_work(conversation, now)
    chosen = Message.objects.filter(conversation__user=user).in_bulk(list(work.messages))
    work.messages = with_belongings(chosen)
    if not work.gone:
        raise NotFound
    return work


def _choose(
    user: User,
    message_ids: Collection[UUID],
    entry_ids: Iterable[UUID],
    lines: Mapping[UUID, Sequence[str]],
    now: datetime,
) -> Work:
    entries = list(MemoryEntry.objects.filter(user=user, pk__in=list(entry_ids)))
    messages = Message.objects.filter(conversation__user=user).in_bulk(list(message_ids))
    return Work(user, now, messages, entries, dict(lines))


@dataclass(frozen=True, slots=True)
class _Reach:
    """Where it was said, the ids of all that goes or was made of it, and what that says of it."""

    homes: set[UUID]
    gone: set[UUID]
    texts: list[str]


def _reach_of(work: Work, beside: Collection[MemoryEntry] = ()) -> _Reach:
    telling = with_belongings(work.messages)
    sources = [row for entry in work.entries for row in _sources(entry, work.said_by(entry))]
    homes = {row.conversation_id for row in [*telling.values(), *sources]}
    homes |= {entry.conversation_id for entry in [*work.entries, *beside] if entry.conversation_id}
    texts = [message_values.text_of(row.parts) for row in telling.values()]
    texts += [text for entry in work.entries for text in work.said_by(entry)]
    gone = work.gone | telling.keys() | {row.pk for row in sources}
    made = entries_made_of([*texts, *found_alone(work.user.pk, homes, telling, gone)], homes)
    return _Reach(homes, gone | made.keys(), [*texts, *chain.from_iterable(made.values())])


def repeating_offloads(
    user: User,
    message_ids: Collection[UUID],
    entry_ids: Iterable[UUID],
    lines: Mapping[UUID, Sequence[str]],
    now: datetime,
) -> tuple[list[str], list[Offload]]:
    """What goes, and what was offloaded elsewhere, where that is cited, and may say it."""
    reach = _reach_of(_choose(user, message_ids, entry_ids, lines, now))
    citing = citing_conversations(offloading_conversations(user.pk), reach.gone, reach.texts)
    return reach.texts, text_offloads(citing - reach.homes)


def forget_locked(
    work: Work,
    *,
    what: str,
    asked_in: UUID | None = None,
    for_good: bool = False,
    offloads: Collection[UUID] = (),
) -> Done:
    homes = {row.pk for row in work.conversations}
    homes |= saying_the_same(homes)  # as long as the entries are there that tell of it
    forgotten = _forget_said(work)
    hashes = _forget_made(work, forgotten, asked_in)
    shared = forget_shared(work.of_others, work.texts, work.gone, work.now)
    work.removed.update(shared.removed)
    work.removed["tombstones"] = raise_tombstones(work.user.pk, work.texts, work.now, for_good=for_good)
    # What was offloaded where it was said may say it too, and is nobody's but the model's.
    files = delete_all_offloads(work.homes)
    files += delete_repeating_offloads((row.pk for row in work.conversations), offloads, since=work.now)
    work.removed["offloaded"] = len(files)
    receipt = _write_receipt(work, what)
    proposal = None if asked_in else propose_recitations(work.user, homes, forgotten, work.now)
    memory_actions.mark_days_stale(work.user.pk, work.days)
    leftovers = Leftovers(work.user.pk, tuple(sorted(work.days)), hashes, offloads=tuple(files))
    return Done(receipt, (leftovers, *shared.leftovers), (*work.ended_runs, *shared.ended_runs), proposal)


def _forget_said(work: Work) -> Forgotten:
    """The words themselves: of the messages, of the entries, and of what the entries were made of."""
    for row in work.messages.values():
        said = message_values.text_of(row.parts)
        work.texts += [said, title_from(said)]
    for entry in work.entries:
        work.texts += work.said_by(entry)
        _forget_sources(work, entry)
    homes = {row.pk for row in work.conversations}
    work.found += found_alone(work.user.pk, homes, work.messages, work.gone)
    told = [*work.texts, *work.found]
    elsewhere = words_said_elsewhere(
        work.user.pk,
        [row.pk for row in work.conversations],
        work.gone,
        Forgotten(told, vocabulary),
        since=work.said_first,
    )
    return Forgotten(told, vocabulary, common=elsewhere)


def _forget_sources(work: Work, entry: MemoryEntry) -> None:
    said = Forgotten(work.said_by(entry), vocabulary)
    for row in _sources(entry, work.said_by(entry)):
        if row.pk not in work.messages:
            work.texts += said.carried(message_values.text_of(row.parts))
            traces.redact_message(row, said, work.now)
            work.changed[row.pk] = row


def _sources(entry: MemoryEntry, texts: Sequence[str]) -> list[Message]:
    """The messages of its spans that say one of these."""
    said = Forgotten(texts, vocabulary)
    return [row for row in said_in(entry) if said.carried(message_values.text_of(row.parts))]


def _forget_made(work: Work, forgotten: Forgotten, asked_in: UUID | None) -> tuple[str, ...]:
    """What hangs on the words: attachments, summaries, entries, events. The hashes of bytes nobody may need now."""
    hashes = delete_unshared_attachments(work.messages)
    work.removed["events"], work.removed["requests"] = empty_calls(work.messages.values())
    work.removed["events"] += empty_plans(work.messages.values())
    for row in work.messages.values():
        traces.empty_message(row, work.now)
    work.changed |= work.messages
    search_actions.remove_entries(work.user.pk, [entry.pk for entry in work.entries])
    for entry in work.entries:
        work.days.add(entry.day)
        if entry.pk in work.lines:
            work.removed["entries_redacted"] += traces.redact_entry(entry, forgotten)
        else:
            entry.delete()
    for conversation in work.conversations:
        _forget_traces(work, conversation, forgotten, asked_in)
    work.removed["profile_lines"] = redact_profile(work.user.pk, forgotten, work.now)
    work.removed["requests"] += traces.forget_sent_profiles(work.user.pk, forgotten)
    work.removed.update(messages=len(work.messages), files=len(hashes))
    work.removed["entries"] = len(work.entries) - len(work.lines)
    work.removed["messages_redacted"] = len(work.changed) - len(work.messages)
    return hashes


def _forget_traces(
    work: Work, conversation: Conversation, forgotten: Forgotten, asked_in: UUID | None
) -> None:
    asked = work.messages.get(asked_in) if asked_in else None
    later = Message.objects.filter(
        conversation=conversation, role__in=(Message.Role.ASSISTANT, Message.Role.TOOL)
    )
    for row in later.select_related("run").exclude(pk__in=list(work.changed)):
        # What answers the wish itself, or was being written, is no speech to be kept.
        is_void = _answers(row, asked) or traces.run_of(row) in work.ended_runs
        redact = traces.redact_message if is_void else traces.redact_tool_results
        if redact(row, forgotten, work.now):
            work.changed[row.pk] = row
    changed = {pk: row for pk, row in work.changed.items() if row.conversation_id == conversation.pk}
    work.removed["events"] += traces.redact_events(
        conversation, forgotten, changed=changed, gone=work.gone | work.changed.keys()
    )
    work.removed["summaries_redacted"] += traces.redact_compactions(conversation, forgotten)
    days, count = traces.redact_entries(conversation, forgotten)
    work.days |= days
    work.removed["entries_redacted"] += count
    work.removed["requests"] += traces.redact_runs(conversation, forgotten)
    traces.redact_conversation(conversation, forgotten, work.now)
    traces.tell_forgotten(conversation, changed.values(), work.now)


def _answers(row: Message, asked: Message | None) -> bool:
    return (
        asked is not None and row.conversation_id == asked.conversation_id and row.position > asked.position
    )


def _write_receipt(work: Work, what: str) -> ForgetReceipt:
    removed = {name: count for name, count in sorted(work.removed.items()) if count}
    return ForgetReceipt.objects.create(user=work.user, what=what, removed=removed, at=work.now)


def propose_recitations(
    user: User, conversation_ids: Collection[UUID], forgotten: Forgotten, now: datetime
) -> ForgetProposal | None:
    """What says it again there and was not chosen: the user decides."""
    found = recitations(conversation_ids, forgotten, MAX_RECITATIONS)
    items = [{"kind": "message", "id": str(message_id)} for message_id in found]
    if not items:
        return None
    return ForgetProposal.objects.create(user=user, items=items, created_at=now)
