"""Reads the rows that name a message or an entry as their source."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet, TextField
from django.db.models.functions import Cast

from chatapp.compaction.models import Compaction
from chatapp.context.models import SentRequest
from chatapp.conversations.branches import messages_between
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.long_term.models import EntrySource, MemoryEntry
from chatapp.operations.database.statements import as_key, as_stored, execute_stored, placeholders
from chatapp.realtime.models import Event
from chatapp.runs.models import Run, ToolCall

IS_CALL = Q(role=Message.Role.TOOL) | Q(role=Message.Role.ASSISTANT, written__contains='"type": "tool_call"')
"""Filters messages from `with_written`. It cannot match within a text, where the quotes would be escaped."""


def with_written(rows: QuerySet[Message]) -> QuerySet[Message]:
    """Return the messages with the alias `written`: their parts as stored, for use in filters."""
    return rows.alias(written=Cast("parts", TextField()))


def with_belongings(messages: Mapping[UUID, Message]) -> dict[UUID, Message]:
    """Return these messages, and the tool messages that belong to answers among them."""
    answers = [pk for pk, row in messages.items() if row.role == Message.Role.ASSISTANT]
    return {**messages, **calls_of(answers).in_bulk()} if answers else {**messages}


def calls_of(answer_ids: Iterable[UUID]) -> QuerySet[Message]:
    """Return the messages with tool calls and results that belong to these answers of runs. Other messages with an
    answer as their parent are excluded: those that programs added, and the next message of an imported conversation."""
    rows = with_written(Message.objects.filter(parent__in=list(answer_ids))).filter(IS_CALL)
    return rows.filter(parent__run__isnull=False, run=None)


def runs_that_read(source_ids: Collection[UUID]) -> dict[UUID, Run]:
    """Return the runs that recalled one of these sources, read it with a tool, or answered it."""
    keys, among = [as_stored(pk) for pk in source_ids], placeholders(len(source_ids))
    # Fixed SQL: usually there are none, and the ORM would take ten times as long to find that.
    sql = (
        f"SELECT run_id FROM chatapp_runsource WHERE source_id IN {among}"
        f" UNION SELECT id FROM chatapp_run WHERE question_id IN {among}"
    )
    ids = [as_key(pk) for [pk] in execute_stored(sql, [*keys, *keys]).fetchall()] if keys else []
    # Runs of a conversation without a user are deleted with the conversation.
    rows = Run.objects.filter(conversation__user__isnull=False)
    return rows.select_related("answer").in_bulk(ids) if ids else {}


def reading_conversations(among: QuerySet[Conversation]) -> set[UUID]:
    """Return the conversations with a run that may have read sources not recorded yet: it is recalling, a tool is
    running, or a result waits for the other calls of its step."""
    runs = Run.objects.filter(conversation__in=among, status=Run.Status.RUNNING)
    if not runs.exists():  # the usual case; building the query below takes ten times as long as running it
        return set()
    may_have_read = Q(state=ToolCall.State.RUNNING) | Q(is_told=False, finished_at__isnull=False)
    calling = ToolCall.objects.filter(may_have_read, run=OuterRef("pk"))
    recorded = Event.objects.filter(run=OuterRef("pk"), type="context")
    kept = SentRequest.objects.filter(run=OuterRef("pk"))
    has_recorded_all = Exists(recorded) & Exists(kept) & ~Exists(calling)
    return set(runs.exclude(has_recorded_all).values_list("conversation_id", flat=True))


@dataclass(frozen=True, slots=True)
class Span:
    """The messages from `first` to `last`, as visible in the branch of `last`."""

    first: Message
    last: Message

    def has(self, row: Message) -> bool:
        is_between = self.first.position <= row.position <= self.last.position
        is_here = row.conversation_id == self.last.conversation_id
        return is_here and is_between and _shows(self.last.branch, row)

    def messages(self) -> QuerySet[Message]:
        return messages_between(self.last.branch, self.first.position, self.last.position)


def spans_of(entries: Collection[MemoryEntry]) -> dict[UUID, list[Span]]:
    """Return by entry id the spans it was made of: its own first, then those of other sources that say it."""
    ends = [
        (entry.pk, entry.first_message_id, entry.last_message_id)
        for entry in entries
        if entry.conversation_id is not None
    ]
    ids = [entry.pk for entry in entries]
    return _read_spans([*ends, *EntrySource.objects.filter(entry__in=ids).values_list("entry_id", *_ENDS)])


def conversations_of(entries: Collection[MemoryEntry]) -> set[UUID]:
    """Return the conversations that these entries were made of."""
    sources = EntrySource.objects.filter(entry__in=[entry.pk for entry in entries]) if entries else ()
    said = {source.conversation_id for source in sources}
    return said | {entry.conversation_id for entry in entries if entry.conversation_id is not None}


_ENDS = ("first_message_id", "last_message_id")
_Ends = tuple[UUID, UUID | None, UUID | None]


def _read_spans(ends: Collection[_Ends]) -> dict[UUID, list[Span]]:
    """Return by entry id the spans of (entry, first message, last message). If one of the two messages is gone, the
    other one is the whole span."""
    ids = {pk for _, *pair in ends for pk in pair if pk}
    with_branches = Message.objects.select_related("branch").defer("parts")
    rows = {row.pk: row for row in with_branches.filter(pk__in=ids)} if ids else {}
    spans: dict[UUID, list[Span]] = defaultdict(list)
    for entry_id, *pair in ends:
        found = [rows[pk] for pk in pair if pk in rows]
        if found:
            spans[entry_id].append(Span(found[0], found[-1]))
    return spans


def entries_covering(rows: Iterable[Message]) -> dict[UUID, MemoryEntry]:
    """Return the entries with a span that contains one of these messages, in the branch of the span."""
    said = ByPosition(rows)
    if not said:
        return {}
    entries = MemoryEntry.objects.filter(conversation__in=said.homes, first_message_id__isnull=False)
    sources = EntrySource.objects.filter(conversation__in=said.homes)
    ends = [*entries.values_list("pk", *_ENDS), *sources.values_list("entry_id", *_ENDS)]
    covering = {
        pk
        for pk, spans in _read_spans(ends).items()
        if any(
            span.has(row)
            for span in spans
            for row in said.between(span.last.conversation_id, span.first.position, span.last.position)
        )
    }
    return MemoryEntry.objects.in_bulk(covering) if covering else {}


class ByPosition:
    """Messages grouped by conversation and sorted by position."""

    def __init__(self, rows: Iterable[Message]) -> None:
        self._rows: dict[UUID, list[Message]] = defaultdict(list)
        for row in sorted(rows, key=lambda row: row.position):
            self._rows[row.conversation_id].append(row)

    def __bool__(self) -> bool:
        return bool(self._rows)

    @property
    def homes(self) -> list[UUID]:
        return list(self._rows)

    @property
    def first_position(self) -> int:
        return min(rows[0].position for rows in self._rows.values())

    def between(self, conversation_id: UUID, first: int, last: int) -> Sequence[Message]:
        here = self._rows.get(conversation_id, [])
        start = bisect_left(here, first, key=lambda row: row.position)
        return here[start : bisect_right(here, last, key=lambda row: row.position)]


def summaries_covering(rows: Iterable[Message]) -> list[Compaction]:
    """Return the summaries with a span that contains one of these messages in its branch, and those built on them; each
    comes after the one it was built on."""
    said = ByPosition(rows)
    found: dict[UUID, Compaction] = {}
    if not said:
        return []
    summaries = Compaction.objects.filter(
        conversation__in=said.homes, last_position__gte=said.first_position
    ).select_related("branch", "conversation")
    for summary in summaries.order_by("last_position", "created_at", "pk"):
        here = said.between(summary.conversation_id, summary.first_position, summary.last_position)
        if summary.previous_id in found or any(_shows(summary.branch, row) for row in here):
            found[summary.pk] = summary
    return list(found.values())


def _shows(branch: Branch, row: Message) -> bool:
    if row.branch_id == branch.pk:
        return True
    return any(str(row.branch_id) == home and row.position <= last for home, last in branch.lineage)


def entries_going_with(conversation: Conversation) -> QuerySet[MemoryEntry]:
    """Return the entries made of the conversation, and entries of deleted conversations that have no other source left.
    Of the latter, exclude entries that a user added, because they were made of no message."""
    sources = EntrySource.objects.filter(conversation=conversation).values("entry")
    elsewhere = EntrySource.objects.filter(entry=OuterRef("pk")).exclude(conversation=conversation)
    by_hand = Q(author=MemoryEntry.Author.USER, first_message_id=None)
    said_here_alone = Q(~Exists(elsewhere), ~by_hand, conversation=None, pk__in=sources)
    entries = MemoryEntry.objects.filter(user=conversation.owner_id)
    return entries.filter(Q(conversation=conversation) | said_here_alone)
