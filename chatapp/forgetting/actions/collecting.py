"""Collects the rows to forget and, by following keys, all rows that name them as a source, and locks them.

Slow work is prepared ahead, without locks. Under the lock the keys are followed again. A prepared text is used if
nothing else was forgotten meanwhile and its row is unchanged.
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
from chatapp.forgetting.actions.derived_texts import (
    calls_repeating,
    make_extracts,
    texts_left_of,
    without_copies,
)
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
from chatapp.long_term.actions.consolidations import restart_consolidations
from chatapp.long_term.actions.tombstones import make_tombstones
from chatapp.long_term.models import MemoryEntry
from chatapp.long_term.selectors.profile import co_sources_of
from chatapp.long_term.selectors.scopes import scopes_of
from chatapp.long_term.selectors.tombstones import tombstones_of
from chatapp.operations.database.access import lock_rows
from chatapp.operations.database.forgetting_counts import raise_forgetting_counts, read_forgetting_count
from chatapp.operations.errors import NotFound
from chatapp.operations.workers import jobs
from chatapp.realtime.hub import stop_runs_after_commit
from chatapp.recall.actions.blanking import Left, blank_messages
from chatapp.recall.actions.indexing import lock_indexes_of
from chatapp.recall.analysis import vocabulary
from chatapp.runs.actions.endings import interrupt_run
from chatapp.runs.models import Run

STOPPED = "The answer was stopped, because something it may have read was forgotten."
BEGUN_AGAIN = "Restarted because a message it covers was forgotten."
Lines = Mapping[UUID, Sequence[str]]
FORMER = "former_revisions"
"""The attribute of a chosen entry that holds its prefetched revisions."""


def begin_forgetting(user_id: UUID) -> int:
    """Raise the forgetting counts of the user and of the shared memories the user adds to; return their sum before.
    Call it first in every transaction that forgets."""
    jobs.wake_to_truncate()
    return raise_forgetting_counts([user_id, *scopes_of(user_id)])


@dataclass(frozen=True, slots=True)
class Chosen:
    """The messages and entries a user chose to forget: all of them, or one piece."""

    user: User
    now: datetime
    message_ids: frozenset[UUID] = frozenset()
    entry_ids: frozenset[UUID] = frozenset()
    lines: Lines = field(default_factory=dict)
    """The lines to forget, for entries that are not forgotten as a whole."""
    together: frozenset[UUID] = frozenset()
    """All messages and entries to forget, if this is one piece of them."""
    redacted: frozenset[UUID] = frozenset()
    """Rows that earlier pieces have blanked, cut or rewritten."""


@dataclass(slots=True)
class Work:
    """One forgetting in progress: the rows to forget, and all rows that name them as a source."""

    chosen: Chosen
    repeats: Repeats
    messages: dict[UUID, Message] = field(default_factory=dict)
    """Messages to blank."""
    entries: dict[UUID, MemoryEntry] = field(default_factory=dict)
    """Entries to delete, or to strip of their `chosen.lines`."""
    cut: dict[UUID, Message] = field(default_factory=dict)
    """Messages to strip of the sentences an entry was made of."""
    copied: dict[UUID, Message] = field(default_factory=dict)
    """Messages to strip of copies in tool calls, tool results and reasoning."""
    derived: dict[UUID, MemoryEntry] = field(default_factory=dict)
    runs: dict[UUID, Run] = field(default_factory=dict)
    also_gone: frozenset[UUID] = frozenset()
    """Sources that the caller removes: a conversation, entries, a file."""
    spared: UUID | None = None
    """The user whose copies stay; only other users lose theirs."""
    ahead: PreparedForgetting | None = None
    removal: Removal | None = None
    """The row of a forgetting in pieces; None if it is one transaction."""
    conversations: dict[UUID, Conversation] = field(default_factory=dict)
    days: dict[UUID, set[date]] = field(default_factory=dict)
    removed: Counter[str] = field(default_factory=Counter)
    remade: set[UUID] = field(default_factory=set)
    """Entries and summaries that were rewritten."""
    ended_runs: list[UUID] = field(default_factory=list)
    returned: list[Mapping[str, Any]] = field(default_factory=list)
    """Blanked tool results, whose offloads are deleted, too."""
    files: list[tuple[UUID, str]] = field(default_factory=list)

    @property
    def user(self) -> User:
        return self.chosen.user

    @property
    def now(self) -> datetime:
        return self.chosen.now

    @property
    def gone(self) -> set[UUID]:
        """Return the messages and entries whose text is removed, in this piece or another."""
        return {*self.messages, *self.entries, *self.chosen.together}

    @property
    def changed(self) -> dict[UUID, Message]:
        return {**self.messages, **self.cut, **self.copied}

    @property
    def source_ids(self) -> set[UUID]:
        return {*self.messages, *self.cut, *self.entries, *self.derived, *self.also_gone}

    @property
    def homes(self) -> set[UUID]:
        """Return the conversations that contain the forgotten text."""
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
        """Return whether an entry or summary needs its new text, which an earlier piece may already have written."""
        return pk not in self.chosen.redacted or text != texts[pk]

    def follow(self) -> None:
        """Add all rows that name a collected row as a source, until there are no new ones."""
        gone, followed, known = self.gone, set[UUID](), set[UUID]()
        self._add_derived(entries_covering([*self.messages.values(), *self.cut.values()]))
        while sources := self.source_ids - followed:  # of the rows added below, only entries are sources
            followed |= sources
            read = runs_that_read(sources)
            self.runs |= {pk: run for pk, run in read.items() if run.user_id != self.spared}
            runs = {pk: run for pk, run in self.runs.items() if pk not in known}
            known |= runs.keys()
            # Keep an answer without copies: the user is asked about a paraphrase, it is never changed unasked.
            copied = {
                pk: row
                for pk, row in _answers_and_calls(runs.values()).items()
                if pk not in gone and without_copies(row.parts, self.repeats.may_repeat) != row.parts
            }
            self.copied |= copied
            covering = entries_covering(copied.values())
            self._add_derived(
                {pk: entry for pk, entry in covering.items() if self.repeats.may_repeat(entry.text)}
            )

    def _add_derived(self, entries: Mapping[UUID, MemoryEntry]) -> None:
        gone = self.gone
        self.derived |= {pk: entry for pk, entry in entries.items() if pk not in gone}

    def summaries(self) -> list[Compaction]:
        """Return the summaries that cover forgotten messages, and those that cover a copy and repeat it."""
        covering = summaries_covering([*self.messages.values(), *self.cut.values()])
        beside = summaries_covering(self.copied.values())
        copying = [row for row in beside if self.repeats.may_repeat(row.summary)]
        return list({row.pk: row for row in (*covering, *copying)}.values())


def _answers_and_calls(runs: Iterable[Run]) -> dict[UUID, Message]:
    answers = {run.answer_id: run.answer for run in runs}
    return {**answers, **calls_of(answers).in_bulk()} if answers else {}


def said_by(entry: MemoryEntry, lines: Lines) -> Sequence[str]:
    """Return the forgotten texts of an entry: the present one and all former ones, or only its `lines`."""
    if entry.pk in lines:
        return lines[entry.pk]
    former = getattr(entry, FORMER, None)
    if former is None:
        return [entry.text, *entry.revisions.values_list("text", flat=True)]
    return [entry.text, *(revision.text for revision in former)]


# --- Prepared ahead, without locks ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChosenTexts:
    """The chosen entries, the repetitions of the chosen texts, and the tombstones to store for them."""

    entries: Mapping[UUID, MemoryEntry]
    repeats: Repeats
    tombstones: Sequence[Tombstone]


@dataclass(frozen=True, slots=True)
class PreparedForgetting:
    """Everything read and prepared before locking. `forgotten_count` is the forgetting count of that time."""

    forgotten_count: int
    said: ChosenTexts
    texts: Mapping[UUID, tuple[int, str]]
    """By derived entry: its revision when read, and the text to keep."""
    extracts: Mapping[UUID, tuple[str, str]]
    """By summary: its text when read, and the extract to replace it."""
    conversations: frozenset[UUID]
    entries: frozenset[UUID]
    """The conversations and entries to lock, as far as known."""
    runs: frozenset[UUID]
    repeating: frozenset[UUID]
    """The messages to propose, valid if `runs` are still all runs that read the forgotten text."""


def read_said(chosen: Chosen, messages: Mapping[UUID, Message] | None = None) -> ChosenTexts:
    """Read the chosen texts and prepare what depends on them. `messages` are the chosen ones, if read already."""
    messages = _messages_of(chosen) if messages is None else messages
    # Prefetch former revisions, because a query for each entry would take longer than everything else.
    entries = {
        row.pk: row for row in _entries_of(chosen).prefetch_related(Prefetch("revisions", to_attr=FORMER))
    }
    said, answered = said_texts(messages.values())
    remembered = [text for entry in entries.values() for text in said_by(entry, chosen.lines)]
    user_id, homes = chosen.user.pk, conversations_of(entries.values())
    with vocabulary.remembering():
        texts = [*said, *remembered]
        repeats = find_repeats(user_id, texts, answered=answered, entries=remembered, made_of=homes)
        # Tombstones also clean a conversation when it is restored: in the trash, nothing else reaches it.
        barred = [*texts, *sentences_in_trash(user_id, entries, repeats.may_repeat)]
        return ChosenTexts(entries, repeats, make_tombstones(user_id, barred, chosen.now))


def prepare_forgetting(chosen: Chosen, said: ChosenTexts | None = None) -> PreparedForgetting:
    """Read and prepare everything possible before locking. If `chosen` is one piece, `said` covers all pieces. Raise
    NotFound if nothing chosen is left."""
    count = read_forgetting_count([chosen.user.pk, *scopes_of(chosen.user.pk)])
    messages = _messages_of(chosen)
    said = said or read_said(chosen, messages)
    entries = {pk: said.entries[pk] for pk in chosen.entry_ids & said.entries.keys()}
    work = _choose(chosen, messages, entries, said.repeats)
    texts, extracts = {}, {}
    if not work.cut and not work.copied:  # else texts depend on messages not rewritten yet
        left = texts_left(work, said.tombstones)
        texts = {pk: (entry.revision, left[pk]) for pk, entry in work.derived.items()}
        summaries = work.summaries()
        said_before = {row.pk: row.summary for row in summaries}
        made = make_extracts(summaries, work.gone)
        extracts = {pk: (said_before[pk], text) for pk, text in made.items()}
    reached, held = frozenset(work.reached), frozenset({*work.entries, *work.derived})
    runs, repeating = frozenset(work.runs), find_repeating(work)
    reading = [pk for pk, run in work.runs.items() if run.answer_id not in work.messages]
    calls_repeating(
        reading, work.repeats.may_repeat
    )  # fills the cache of `may_repeat` for use under the lock
    return PreparedForgetting(count, said, texts, extracts, reached, held, runs, repeating)


def find_repeating(work: Work) -> frozenset[UUID]:
    """Return messages to propose: repetitions of the text, answers of runs that read it, and answers to forgotten
    messages that may repeat it. Exclude messages that are forgotten or cut."""
    ids = {one.message_id for one in work.repeats.found if one.message_id}
    ids |= {row.pk for row in said_in(work.entries.values(), work.repeats.alike)}
    answers = {run.answer_id for run in work.runs.values() if run.question_id not in work.gone}
    near = {run.answer_id for run in work.runs.values()} - answers - work.gone
    children = Message.objects.filter(parent__in=work.messages, role=Message.Role.ASSISTANT)
    others = [
        *(Message.objects.filter(pk__in=near) if near else ()),
        *(children.exclude(pk__in=work.gone) if work.messages else ()),
    ]
    answers |= {row.pk for row in others if work.repeats.may_repeat(message_values.text_of(row.parts))}
    return frozenset((ids | answers) - work.gone - work.cut.keys())


def texts_left(work: Work, tombstones: Sequence[Tombstone] = ()) -> dict[UUID, str]:
    """Return the texts to keep of the derived entries, by entry id."""
    users = {entry.user_id for entry in work.derived.values()}
    barred = {pk: tombstones_of(pk, tombstones if pk == work.user.pk else ()) for pk in users}
    return texts_left_of(work.derived.values(), work.gone, work.repeats.may_repeat, barred)


def _messages_of(chosen: Chosen) -> dict[UUID, Message]:
    """Return the chosen messages left, with the tool messages of answers, without those forgotten by earlier pieces."""
    if not chosen.message_ids:
        return {}
    rows = Message.objects.filter(conversation__user=chosen.user).in_bulk(list(chosen.message_ids))
    return {pk: row for pk, row in with_belongings(rows).items() if pk not in chosen.redacted}


def _entries_of(chosen: Chosen) -> QuerySet[MemoryEntry]:
    return MemoryEntry.objects.filter(user=chosen.user, pk__in=list(chosen.entry_ids))


# --- Locked --------------------------------------------------------------------------------------------------


def lock_chosen(
    chosen: Chosen, ahead: PreparedForgetting, *, forgotten_count: int, beside: Collection[MemoryEntry] = ()
) -> Work:
    """Lock everything that is read and written from here on: the chosen rows, rows that name them as a source, and the
    entries `beside`, which the same transaction changes. Call it after `begin_forgetting`, which returned
    `forgotten_count`. Raise NotFound if nothing chosen is left."""
    user, repeats = chosen.user, ahead.said.repeats
    reached, held = {*ahead.conversations}, {*ahead.entries}
    while True:
        reached |= {entry.conversation_id for entry in beside if entry.conversation_id}
        # An answer being written may be reading the text right now. Lock its conversation to stop it.
        reached |= reading_conversations(Conversation.objects.filter(user=user))
        held |= {entry.pk for entry in beside}
        with transaction.atomic():
            rows = lock_reached(user.pk, reached, MemoryEntry.objects.filter(pk__in=held), chosen.now)
            entries = {row.pk: row for row in _entries_of(chosen)}
            work = _choose(chosen, _messages_of(chosen), entries, repeats)
            if work.reached <= reached and {*work.entries, *work.derived} <= held:
                break
            # More rows were found meanwhile: release all locks, to take all of them in lock order.
            transaction.set_rollback(True)
        reached, held = work.reached, {*work.entries, *work.derived}
    hold(work, rows)
    if work.ended_runs:  # ending the runs wrote messages
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
    """Return the user messages among these ids that lie in the spans the entries were made of."""
    if not entries or not message_ids:
        return []
    spans = [span for some in spans_of(entries).values() for span in some]
    rows = Message.objects.filter(pk__in=message_ids, role=Message.Role.USER)
    return [row for row in rows if any(span.has(row) for span in spans)]


def lock_reached(
    user_id: UUID, conversation_ids: Iterable[UUID], entries: QuerySet[MemoryEntry], now: datetime
) -> list[Conversation]:
    """Lock consolidations, conversations, entries and indexes, in the lock order of the project, each kind in one
    statement. Return the current conversations. Restart running consolidations, which may have read the text."""
    rows = Conversation.objects.filter(pk__in=set(conversation_ids))
    users = {user_id, *rows.values_list("user_id", flat=True)}
    restart_consolidations(user_ids=users, now=now)
    locked = list(rows.select_for_update().order_by("pk"))
    _lock_entries(entries, users)
    lock_indexes_of(users, entries)
    return locked


def _lock_entries(entries: QuerySet[MemoryEntry], user_ids: Collection[UUID]) -> None:
    """Lock entries, and the other sources of profile lines made of them, which are consolidated again."""
    if connection.features.has_select_for_update:  # else skip the slow reading of profiles
        beside = co_sources_of(user_ids, entries.values_list("pk", flat=True))
        lock_rows(MemoryEntry.objects.filter(Q(pk__in=entries.values("pk")) | Q(pk__in=beside)))


def hold(work: Work, rows: Iterable[Conversation]) -> None:
    """Record the locked conversations and stop the work in them. Blank stopped answers that may repeat the text."""
    work.conversations = {row.pk: row for row in rows}
    _stop_work(work)
    for row in Message.objects.filter(run__in=work.ended_runs) if work.ended_runs else ():
        if work.repeats.may_repeat(message_values.text_of(row.parts)):
            work.note_returned(row.parts)
            row.parts = []
            work.copied[row.pk] = row


def _stop_work(work: Work) -> None:
    """End the answers and summaries being written in these conversations: they may have read the forgotten text."""
    rows = work.conversations
    # Same lock order as the renewal of leases.
    for run in Run.objects.filter(conversation__in=rows, status__in=Run.ACTIVE).order_by("pk"):
        if interrupt_run(run_id=run.pk, fence=run.fence, now=work.now, message=STOPPED):
            stop_runs_after_commit([run.pk])
            work.ended_runs.append(run.pk)
            rows[run.conversation_id].refresh_from_db()  # ending the run has appended an event
    active = Compaction.objects.filter(conversation__in=rows, status__in=Compaction.ACTIVE)
    homes = list(active.values_list("conversation", flat=True))
    for home in homes:
        jobs.wake_worker("chatapp.compaction.tasks.plan_compaction", str(home))
    if homes:
        active.update(
            status=Compaction.Status.FAILED, error=BEGUN_AGAIN, finished_at=work.now, lease_expires_at=None
        )
