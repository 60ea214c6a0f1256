"""Collect what is forgotten and all that names it as a source, and lock it: a walk along keys.

What takes long is read and made ahead, with nothing locked. Under the lock the keys are followed again; a text made
ahead counts where nothing else was forgotten and its row says what it said then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Prefetch, Q, QuerySet

from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.conversations import message_values
from chatapp.conversations.models import Conversation, Message
from chatapp.forgetting.actions.remaking import calls_telling, make_extracts, texts_left_of, without_copies
from chatapp.forgetting.models import Removal, Tombstone
from chatapp.forgetting.selectors.derived import (
    calls_of,
    conversations_of,
    entries_covering,
    reading_conversations,
    runs_that_read,
    spans_of,
    summaries_covering,
    with_belongings,
)
from chatapp.forgetting.selectors.repeats import Repeats, find_repeats, said_texts
from chatapp.forgetting.trash.selectors import sentences_in_trash
from chatapp.long_term.actions.consolidations import begin_again
from chatapp.long_term.actions.tombstones import make_tombstones
from chatapp.long_term.models import MemoryEntry
from chatapp.long_term.selectors.profile import entries_named_beside
from chatapp.long_term.selectors.scopes import scopes_of
from chatapp.long_term.selectors.tombstones import tombstones_of
from chatapp.operations import jobs
from chatapp.operations.access import lock_rows
from chatapp.operations.errors import NotFound
from chatapp.operations.forgetting_counts import raise_forgetting_counts, read_forgetting_count
from chatapp.operations.journal import wake_to_truncate
from chatapp.realtime.hub import stop_runs_after_commit
from chatapp.recall.actions.blanking import Left, blank_messages
from chatapp.recall.actions.indexing import lock_indexes_of
from chatapp.recall.analysis import vocabulary
from chatapp.runs.actions.endings import interrupt_run
from chatapp.runs.models import Run

STOPPED = "The answer was stopped, because something it may have read was forgotten."
BEGUN_AGAIN = "Something it covers was forgotten meanwhile."
Lines = Mapping[UUID, Sequence[str]]
FORMER = "former_revisions"
"""Where the revisions of chosen entries are kept, once they were read."""


def begin_forgetting(user_id: UUID) -> int:
    """Raise the counts of the user and of the shared memories the user adds to; return how often something was
    forgotten there before. To be called as the first statement of every transaction that forgets."""
    wake_to_truncate()
    return raise_forgetting_counts([user_id, *scopes_of(user_id)])


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a user chose to forget: all of it, or one piece."""

    user: User
    now: datetime
    message_ids: frozenset[UUID] = frozenset()
    entry_ids: frozenset[UUID] = frozenset()
    lines: Lines = field(default_factory=dict)
    """Of these entries only these lines go."""
    together: frozenset[UUID] = frozenset()
    """All that goes, where this is a piece of it."""
    redacted: frozenset[UUID] = frozenset()
    """What earlier pieces have blanked, cut or made anew."""


@dataclass(slots=True)
class Work:
    """One forgetting under way: what goes, and all that names it as a source."""

    chosen: Chosen
    repeats: Repeats
    messages: dict[UUID, Message] = field(default_factory=dict)
    """Messages that are blanked."""
    entries: dict[UUID, MemoryEntry] = field(default_factory=dict)
    """Entries that are deleted, or lose their `chosen.lines`."""
    cut: dict[UUID, Message] = field(default_factory=dict)
    """Messages that lose the sentences an entry was made of."""
    copied: dict[UUID, Message] = field(default_factory=dict)
    """Messages that lose what a tool was asked about it or returned of it."""
    derived: dict[UUID, MemoryEntry] = field(default_factory=dict)
    runs: dict[UUID, Run] = field(default_factory=dict)
    also_gone: frozenset[UUID] = frozenset()
    """Sources that are deleted elsewhere: a conversation, entries."""
    spared: UUID | None = None
    """The user whose own copies stay: only others lose theirs."""
    ahead: Ahead | None = None
    removal: Removal | None = None
    """The row of a forgetting done in pieces; None where it is one transaction."""
    conversations: dict[UUID, Conversation] = field(default_factory=dict)
    days: dict[UUID, set[date]] = field(default_factory=dict)
    removed: Counter[str] = field(default_factory=Counter)
    remade: set[UUID] = field(default_factory=set)
    """Entries and summaries that say what is left."""
    ended_runs: list[UUID] = field(default_factory=list)
    returned: list[Mapping[str, Any]] = field(default_factory=list)
    """The results of tools that are blanked: what is stored of them goes."""
    files: list[tuple[UUID, str]] = field(default_factory=list)

    @property
    def user(self) -> User:
        return self.chosen.user

    @property
    def now(self) -> datetime:
        return self.chosen.now

    @property
    def gone(self) -> set[UUID]:
        """The messages and entries whose text is removed, here or in another piece."""
        return {*self.messages, *self.entries, *self.chosen.together}

    @property
    def changed(self) -> dict[UUID, Message]:
        return {**self.messages, **self.cut, **self.copied}

    @property
    def source_ids(self) -> set[UUID]:
        return {*self.messages, *self.cut, *self.entries, *self.derived, *self.also_gone}

    @property
    def homes(self) -> set[UUID]:
        """The conversations in which it was said."""
        return {row.conversation_id for row in (*self.messages.values(), *self.cut.values())}

    @property
    def reached(self) -> set[UUID]:
        entries = (*self.entries.values(), *self.derived.values())
        here = {row.conversation_id for row in self.changed.values()}
        here |= {run.conversation_id for run in self.runs.values()}
        return here | {entry.conversation_id for entry in entries if entry.conversation_id}

    def blank(self, rows: Mapping[UUID, Message], left: Left = MappingProxyType({})) -> None:
        if not rows:
            return
        for pk, row in rows.items():
            self.note_returned(part for part in row.parts if part not in left.get(pk, ()))
        hides = self.removal is not None and not left
        blank_messages([*rows.values()], self.now, left, hides=hides)

    def note_returned(self, parts: Iterable[Mapping[str, Any]]) -> None:
        self.returned += [part for part in parts if part["type"] == "tool_result"]

    def is_new(self, pk: UUID, text: str, texts: Mapping[UUID, str]) -> bool:
        """Return whether an entry or summary does not say what is left of it since an earlier piece."""
        return pk not in self.chosen.redacted or text != texts[pk]

    def follow(self) -> None:
        """Add everything that names what is here as its source, until nothing more does."""
        gone, followed, known = self.gone, set[UUID](), set[UUID]()
        self._add_derived(entries_covering([*self.messages.values(), *self.cut.values()]))
        while sources := self.source_ids - followed:  # only an entry is a source of more
            followed |= sources
            read = runs_that_read(sources)
            self.runs |= {pk: run for pk, run in read.items() if run.user_id != self.spared}
            runs = {pk: run for pk, run in self.runs.items() if pk not in known}
            known |= runs.keys()
            # An answer that copied nothing stays: what it says in its own words is proposed, never changed unasked.
            copied = {
                pk: row
                for pk, row in _answers_and_calls(runs.values()).items()
                if pk not in gone and without_copies(row.parts, self.repeats.are_near) != row.parts
            }
            self.copied |= copied
            covering = entries_covering(copied.values())
            self._add_derived(
                {pk: entry for pk, entry in covering.items() if self.repeats.are_near(entry.text)}
            )

    def _add_derived(self, entries: Mapping[UUID, MemoryEntry]) -> None:
        gone = self.gone
        self.derived |= {pk: entry for pk, entry in entries.items() if pk not in gone}

    def summaries(self) -> list[Compaction]:
        """Return those that cover it, and those that cover a copy and tell of it."""
        covering = summaries_covering([*self.messages.values(), *self.cut.values()])
        beside = summaries_covering(self.copied.values())
        copying = [row for row in beside if self.repeats.are_near(row.summary)]
        return list({row.pk: row for row in (*covering, *copying)}.values())

    def said_by(self, entry: MemoryEntry) -> Sequence[str]:
        """Return what is forgotten of it: what it says, and said before an edit, or only the chosen lines."""
        return _said_by(entry, self.chosen.lines)


def _answers_and_calls(runs: Iterable[Run]) -> dict[UUID, Message]:
    answers = {run.answer_id: run.answer for run in runs}
    return {**answers, **calls_of(answers).in_bulk()} if answers else {}


def _said_by(entry: MemoryEntry, lines: Lines) -> Sequence[str]:
    if entry.pk in lines:
        return lines[entry.pk]
    former = getattr(entry, FORMER, None)
    if former is None:
        return [entry.text, *entry.revisions.values_list("text", flat=True)]
    return [entry.text, *(revision.text for revision in former)]


# --- Ahead, with nothing locked ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Said:
    """What the chosen messages and entries say, where else it is said, and what bars it."""

    entries: Mapping[UUID, MemoryEntry]
    repeats: Repeats
    tombstones: Sequence[Tombstone]


@dataclass(frozen=True, slots=True)
class Ahead:
    """What was read and made before anything is locked, when something had been forgotten `forgotten_count` times."""

    forgotten_count: int
    said: Said
    revisions: Mapping[UUID, int]
    """Of the chosen entries."""
    texts: Mapping[UUID, tuple[int, str]]
    """Of derived entries by their revision: what is left of each."""
    extracts: Mapping[UUID, tuple[str, str]]
    """Of summaries by what they said: what is left of each."""
    conversations: frozenset[UUID]
    entries: frozenset[UUID]
    """What has to be locked, as far as is known."""
    runs: frozenset[UUID]
    repeating: frozenset[UUID]
    """The messages that the user is asked about, where these runs have read it."""


def read_said(chosen: Chosen) -> Said:
    return _read_said(chosen, _messages_of(chosen))


def _read_said(chosen: Chosen, messages: Mapping[UUID, Message]) -> Said:
    # What entries said before each edit, too: a queryset for each takes longer than all else.
    entries = {
        row.pk: row for row in _entries_of(chosen).prefetch_related(Prefetch("revisions", to_attr=FORMER))
    }
    said, answered = said_texts(messages.values())
    remembered = [text for entry in entries.values() for text in _said_by(entry, chosen.lines)]
    user_id, homes = chosen.user.pk, conversations_of(entries.values())
    with vocabulary.remembering():
        texts = [*said, *remembered]
        repeats = find_repeats(user_id, texts, answered=answered, entries=remembered, made_of=homes)
        # By these a conversation that is restored later is cleaned: in the trash nothing else reaches it.
        barred = [*texts, *sentences_in_trash(user_id, entries, repeats.are_near)]
        return Said(entries, repeats, make_tombstones(user_id, barred, chosen.now))


def read_ahead(chosen: Chosen, said: Said | None = None) -> Ahead:
    """Return what can be read and made before anything is locked. `said` is what all pieces say, where `chosen` is one
    of them. Raise NotFound where nothing chosen is left."""
    count = read_forgetting_count([chosen.user.pk, *scopes_of(chosen.user.pk)])
    messages = _messages_of(chosen)
    said = said or _read_said(chosen, messages)
    entries = {pk: said.entries[pk] for pk in chosen.entry_ids & said.entries.keys()}
    work = _choose(chosen, messages, entries, said.repeats)
    texts, extracts = {}, {}
    if not work.cut and not work.copied:  # what is left of these is not written yet
        left = texts_left(work, said.tombstones)
        texts = {pk: (entry.revision, left[pk]) for pk, entry in work.derived.items()}
        summaries = work.summaries()
        said_before = {row.pk: row.summary for row in summaries}
        made = make_extracts(summaries, work.gone)
        extracts = {pk: (said_before[pk], text) for pk, text in made.items()}
    revisions = {pk: entry.revision for pk, entry in entries.items()}
    reached, held = frozenset(work.reached), frozenset({*work.entries, *work.derived})
    runs, repeating = frozenset(work.runs), find_repeating(work)
    reading = [pk for pk, run in work.runs.items() if run.answer_id not in work.messages]
    calls_telling(reading, work.repeats.are_near)  # which knows what they say from here on
    return Ahead(count, said, revisions, texts, extracts, reached, held, runs, repeating)


def find_repeating(work: Work) -> frozenset[UUID]:
    """Return the answers of runs that had recalled it, and what repeats it and was not chosen."""
    ids = {one.message_id for one in work.repeats.found if one.message_id}
    ids |= {row.pk for row in said_in(work.entries.values(), work.repeats.alike)}
    answers = {run.answer_id for run in work.runs.values() if run.question_id not in work.gone}
    near = {run.answer_id for run in work.runs.values()} - answers - work.gone
    children = Message.objects.filter(parent__in=work.messages, role=Message.Role.ASSISTANT)
    others = [
        *(Message.objects.filter(pk__in=near) if near else ()),
        *(children.exclude(pk__in=work.gone) if work.messages else ()),
    ]
    answers |= {row.pk for row in others if work.repeats.are_near(message_values.text_of(row.parts))}
    return frozenset((ids | answers) - work.gone - work.cut.keys())


def texts_left(work: Work, tombstones: Sequence[Tombstone] = ()) -> dict[UUID, str]:
    """Return what is left of the derived entries."""
    users = {entry.user_id for entry in work.derived.values()}
    barred = {pk: tombstones_of(pk, tombstones if pk == work.user.pk else ()) for pk in users}
    return texts_left_of(work.derived.values(), work.gone, work.repeats.are_near, barred)


def _messages_of(chosen: Chosen) -> dict[UUID, Message]:
    """Return those that are there, without what an earlier piece has forgotten."""
    if not chosen.message_ids:
        return {}
    rows = Message.objects.filter(conversation__user=chosen.user).in_bulk(list(chosen.message_ids))
    return {pk: row for pk, row in with_belongings(rows).items() if pk not in chosen.redacted}


def _entries_of(chosen: Chosen) -> QuerySet[MemoryEntry]:
    return MemoryEntry.objects.filter(user=chosen.user, pk__in=list(chosen.entry_ids))


# --- Chosen, and locked --------------------------------------------------------------------------------------


def lock_chosen(
    chosen: Chosen, ahead: Ahead, *, forgotten_count: int, beside: Collection[MemoryEntry] = ()
) -> Work:
    """Lock all that is read and written from here on: what is chosen, what names it as a source, and the entries
    `beside` it, which are changed in the same transaction. To be called after `begin_forgetting`, which returned
    `forgotten_count`. Raise NotFound where nothing chosen is left."""
    user, repeats = chosen.user, ahead.said.repeats
    reached, held = {*ahead.conversations}, {*ahead.entries}
    while True:
        reached |= {entry.conversation_id for entry in beside if entry.conversation_id}
        # An answer or a summary being written may read it at this moment: it is stopped under the lock.
        reached |= reading_conversations(Conversation.objects.filter(user=user))
        held |= {entry.pk for entry in beside}
        with transaction.atomic():
            rows = lock_reached(user.pk, reached, MemoryEntry.objects.filter(pk__in=held), chosen.now)
            entries = {row.pk: row for row in _entries_of(chosen)}
            work = _choose(chosen, _messages_of(chosen), entries, repeats)
            if work.reached <= reached and {*work.entries, *work.derived} <= held:
                break
            # More was found meanwhile: all locks are released, to take all of them in order.
            transaction.set_rollback(True)
        reached, held = work.reached, {*work.entries, *work.derived}
    hold(work, rows)
    if work.ended_runs:  # their ends wrote messages
        messages = Message.objects.filter(conversation__user=user).in_bulk(list(work.messages))
        work.messages = with_belongings(messages)
    is_same = forgotten_count == ahead.forgotten_count
    work.ahead = ahead if is_same else None
    return work


def _choose(
    chosen: Chosen, messages: dict[UUID, Message], entries: dict[UUID, MemoryEntry], repeats: Repeats
) -> Work:
    if not messages and not entries:
        raise NotFound
    work = Work(chosen, repeats, messages, entries)
    found = {one.message_id for one in repeats.found if one.role == Message.Role.USER and one.message_id}
    cut = said_in(entries.values(), found - work.gone - chosen.redacted)
    work.cut = {row.pk: row for row in cut}
    work.follow()
    return work


def said_in(entries: Collection[MemoryEntry], message_ids: Collection[UUID]) -> list[Message]:
    """Return those of these messages that users said in the spans that the entries were made of."""
    if not entries or not message_ids:
        return []
    spans = [span for some in spans_of(entries).values() for span in some]
    rows = Message.objects.filter(pk__in=message_ids, role=Message.Role.USER)
    return [row for row in rows if any(span.has(row) for span in spans)]


def lock_reached(
    user_id: UUID, conversation_ids: Iterable[UUID], entries: QuerySet[MemoryEntry], now: datetime
) -> list[Conversation]:
    """Lock consolidations, conversations, entries and indexes, in this order as everybody does, rows of one kind in one
    statement. Return the conversations as they are now. Consolidations under way have read it and begin again."""
    rows = Conversation.objects.filter(pk__in=set(conversation_ids))
    users = {user_id, *rows.values_list("user_id", flat=True)}
    begin_again(user_ids=users, now=now)
    locked = list(rows.select_for_update().order_by("pk"))
    _lock_entries(entries, users)
    lock_indexes_of(users, entries)
    return locked


def _lock_entries(entries: QuerySet[MemoryEntry], user_ids: Collection[UUID]) -> None:
    """Lock entries, and those that the profile reads anew without the lines that were made of both."""
    if connection.features.has_select_for_update:  # reading the profile for nothing takes long
        beside = entries_named_beside(user_ids, entries.values_list("pk", flat=True))
        lock_rows(MemoryEntry.objects.filter(Q(pk__in=entries.values("pk")) | Q(pk__in=beside)))


def hold(work: Work, rows: Iterable[Conversation]) -> None:
    """Note the conversations that are locked, and stop what goes on there: of an answer that was being written nothing
    is kept that may tell of it."""
    work.conversations = {row.pk: row for row in rows}
    _stop_work(work)
    for row in Message.objects.filter(run__in=work.ended_runs) if work.ended_runs else ():
        if work.repeats.are_near(message_values.text_of(row.parts)):
            work.note_returned(row.parts)
            row.parts = []
            work.copied[row.pk] = row


def _stop_work(work: Work) -> None:
    """End the answers and summaries being written in these conversations: they may have read what is forgotten."""
    rows = work.conversations
    # In the order in which their process renews their leases.
    for run in Run.objects.filter(conversation__in=rows, status__in=Run.ACTIVE).order_by("pk"):
        if interrupt_run(run_id=run.pk, fence=run.fence, now=work.now, message=STOPPED):
            stop_runs_after_commit([run.pk])
            work.ended_runs.append(run.pk)
            rows[run.conversation_id].refresh_from_db()  # its end has counted an event
    active = Compaction.objects.filter(conversation__in=rows, status__in=Compaction.ACTIVE)
    homes = list(active.values_list("conversation", flat=True))
    for home in homes:
        jobs.wake_worker("chatapp.compaction.tasks.plan_compaction", str(home))
    if homes:
        active.update(
            status=Compaction.Status.FAILED, error=BEGUN_AGAIN, finished_at=work.now, lease_expires_at=None
        )
