"""Read what names a message or an entry as its source."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from chatapp.compaction.models import Compaction
from chatapp.context.models import SentRequest
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.long_term.models import EntrySource, MemoryEntry
from chatapp.realtime.models import Event
from chatapp.runs.models import Run, ToolCall


def with_belongings(messages: Mapping[UUID, Message]) -> dict[UUID, Message]:
    """Return these, and the messages of the calls that answers among them made."""
    answers = [pk for pk, row in messages.items() if row.role == Message.Role.ASSISTANT]
    return {**messages, **calls_of(answers).in_bulk()}


def calls_of(answer_ids: Iterable[UUID]) -> QuerySet[Message]:
    """The messages that ask a tool or hold its result, of these answers of runs. In what was imported every message is
    the parent of the next."""
    roles = (Message.Role.ASSISTANT, Message.Role.TOOL)
    return Message.objects.filter(
        parent__in=list(answer_ids), parent__run__isnull=False, run=None, role__in=roles
    )


def runs_that_read(source_ids: Collection[UUID]) -> dict[UUID, Run]:
    """Those that recalled one of these, got it from a tool, or answered it."""
    read = Q(sources__source_id__in=source_ids) | Q(question__in=source_ids)
    rows = Run.objects.filter(read, conversation__user__isnull=False)  # others go with their conversation
    return {run.pk: run for run in rows.select_related("answer").distinct()}


def reading_conversations(among: QuerySet[Conversation]) -> set[UUID]:
    """Where a run may hold what it has not noted yet: it recalls, a tool of it runs, or has returned what waits for
    the other calls of its step."""
    runs = Run.objects.filter(conversation__in=among, status=Run.Status.RUNNING)
    may_have_read = Q(state=ToolCall.State.RUNNING) | Q(is_told=False, finished_at__isnull=False)
    calling = ToolCall.objects.filter(may_have_read, run=OuterRef("pk"))
    told = Event.objects.filter(run=OuterRef("pk"), type="context")
    kept = SentRequest.objects.filter(run=OuterRef("pk"))
    has_told_all = Exists(told) & Exists(kept) & ~Exists(calling)
    return set(runs.exclude(has_told_all).values_list("conversation_id", flat=True))


def entries_covering(rows: Iterable[Message]) -> dict[UUID, MemoryEntry]:
    """The entries one of whose spans has one of these messages, on its branch."""
    found: dict[UUID, MemoryEntry] = {}
    for home, here in _by_home(rows).items():
        entries = MemoryEntry.objects.filter(conversation=home, first_message_id__isnull=False)
        sources = EntrySource.objects.filter(conversation=home)
        spans = [*entries.values_list("pk", *_ENDS), *sources.values_list("entry_id", *_ENDS)]
        ends = _ends_of({pk for _, *pair in spans for pk in pair if pk})
        covering = {
            pk
            for pk, first_id, last_id in spans
            if first_id in ends
            and last_id in ends
            and any(_lies_between(row, ends[first_id], ends[last_id]) for row in here)
        }
        found |= MemoryEntry.objects.in_bulk(covering)
    return found


_ENDS = ("first_message_id", "last_message_id")


def _by_home(rows: Iterable[Message]) -> dict[UUID, list[Message]]:
    here: dict[UUID, list[Message]] = defaultdict(list)
    for row in rows:
        here[row.conversation_id].append(row)
    return here


def _ends_of(message_ids: Collection[UUID]) -> dict[UUID | None, Message]:
    rows = Message.objects.filter(pk__in=message_ids).select_related("branch").defer("parts")
    return {row.pk: row for row in rows}


def _lies_between(row: Message, first: Message, last: Message) -> bool:
    """The branch of a span's last message shows all of the span."""
    return first.position <= row.position <= last.position and _shows(last.branch, row)


def _positions_of(message_ids: Collection[UUID]) -> dict[UUID | None, int]:
    return dict(Message.objects.filter(pk__in=message_ids).values_list("pk", "position"))


def spans_of(entry: MemoryEntry) -> list[QuerySet[Message]]:
    """The messages an entry was made of: its own span first, then others that said it."""
    ends = [(entry.conversation_id, entry.first_message_id, entry.last_message_id)]
    ends += entry.sources.values_list("conversation_id", *_ENDS)
    spans = []
    for home, first_id, last_id in ends:
        at = _positions_of([one for one in (first_id, last_id) if one])
        if home is not None and at:
            where = {"position__gte": min(at.values()), "position__lte": max(at.values())}
            spans.append(Message.objects.filter(conversation=home, **where))
    return spans


def summaries_covering(rows: Collection[Message]) -> list[Compaction]:
    """Those whose span has one of these messages on its branch, and those built on them; a summary comes behind the one
    it was built on."""
    found: dict[UUID, Compaction] = {}
    for home in {row.conversation_id for row in rows}:
        here = [row for row in rows if row.conversation_id == home]
        summaries = Compaction.objects.filter(conversation=home).select_related("branch", "conversation")
        for summary in summaries.order_by("last_position", "created_at", "pk"):
            if summary.previous_id in found or any(_covers(summary, row) for row in here):
                found[summary.pk] = summary
    return list(found.values())


def _covers(summary: Compaction, row: Message) -> bool:
    return summary.first_position <= row.position <= summary.last_position and _shows(summary.branch, row)


def _shows(branch: Branch, row: Message) -> bool:
    if row.branch_id == branch.pk:
        return True
    return any(str(row.branch_id) == home and row.position <= last for home, last in branch.lineage)


def entries_going_with(conversation: Conversation) -> QuerySet[MemoryEntry]:
    """Those made of it, and those made elsewhere of what is deleted, which it alone says still. What a user added by
    hand was made of nothing."""
    sources = EntrySource.objects.filter(conversation=conversation).values("entry")
    elsewhere = EntrySource.objects.filter(entry=OuterRef("pk")).exclude(conversation=conversation)
    by_hand = Q(author=MemoryEntry.Author.USER, first_message_id=None)
    said_here_alone = Q(~Exists(elsewhere), ~by_hand, conversation=None, pk__in=sources)
    entries = MemoryEntry.objects.filter(user=conversation.owner_id)
    return entries.filter(Q(conversation=conversation) | said_here_alone)
