"""Reads memory entries and the days they belong to. Proposed entries belong to no day."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Prefetch, Q, QuerySet, Sum
from django.db.models.functions import TruncDate

from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.conversations import message_values
from chatapp.conversations.models import Conversation, Message
from chatapp.long_term.models import EntryRevision, EntrySource, MemoryEntry, StaleDay
from chatapp.operations.database.access import find_row, lock_rows, parse_id
from chatapp.operations.database.statements import execute
from chatapp.providers.models import Usage
from chatapp.realtime.models import Event
from memory.language.sentences import split_sentences
from memory.long_term.new_sentences import KnownSentences
from memory.tokens import estimate_text


def kept_entries() -> QuerySet[MemoryEntry]:
    return MemoryEntry.objects.filter(state=MemoryEntry.State.KEPT)


def withdrawn_entries() -> QuerySet[MemoryEntry]:
    """Return extracted entries that no summary covers: their compaction was undone, and no other compaction covers any
    of their messages. Searches find the messages instead."""
    standing = Compaction.objects.filter(
        status=Compaction.Status.DONE,
        branch=OuterRef("compaction__branch"),
        first_position__lte=OuterRef("compaction__last_position"),
        last_position__gte=OuterRef("compaction__first_position"),
    )
    undone = MemoryEntry.objects.filter(compaction__status=Compaction.Status.UNDONE)
    return undone.filter(~Exists(standing), author=MemoryEntry.Author.EXTRACTION)


@dataclass(frozen=True, slots=True)
class DayCount:
    day: date
    entry_count: int


def list_days(user: User, *, before: date | None = None, limit: int = 50) -> list[DayCount]:
    """Return days with their number of entries, newest first; `before` is the last day of the previous page."""
    rows = kept_entries().filter(user=user)
    if before is not None:
        rows = rows.filter(day__lt=before)
    counted = rows.values("day").annotate(entry_count=Count("id")).order_by("-day")
    return [DayCount(row["day"], row["entry_count"]) for row in counted[:limit]]


READ_SOURCES = "read_sources"


def _with_sources(rows: QuerySet[MemoryEntry]) -> QuerySet[MemoryEntry]:
    """Return the entries with their sources prefetched as lists, because a queryset for each entry would take longer
    than all else."""
    return rows.prefetch_related(Prefetch("sources", to_attr=READ_SOURCES))


def sources_of(entry: MemoryEntry) -> Sequence[EntrySource]:
    """Return the other spans that say the same, prefetched with the entry or read now."""
    known: Sequence[EntrySource] | None = getattr(entry, READ_SOURCES, None)
    return list(entry.sources.all()) if known is None else known


def day_entries(user_id: UUID, day: date) -> list[MemoryEntry]:
    """Return the entries of a day, oldest first, with their conversations and their user, who is read once."""
    rows = kept_entries().filter(user_id=user_id, day=day).select_related("conversation", "scope")
    found = list(_with_sources(rows).order_by("created_at", "id"))
    if found:
        user = User.objects.get(pk=user_id)
        for row in found:
            row.user = user
    return found


def day_entry_ids(user_id: UUID, day: date) -> list[UUID]:
    return list(kept_entries().filter(user_id=user_id, day=day).values_list("pk", flat=True))


def revisions_of_day(user_id: UUID, day: date) -> dict[UUID | str, int]:
    """Return the revision of each entry of the day, by its id as the database stores it. Two results are equal if
    nothing has changed."""
    stored = execute(_REVISIONS, user_id, day.isoformat(), MemoryEntry.State.KEPT.value)
    return dict(stored.fetchall())


_REVISIONS = "SELECT id, revision FROM chatapp_memoryentry WHERE user_id = %s AND day = %s AND state = %s"


def lock_day(user: User, day: date) -> None:
    """Lock the entries of a day until the transaction ends. Lock their conversations first, as everywhere."""
    rows = kept_entries().filter(user=user, day=day)
    lock_rows(Conversation.objects.filter(pk__in=rows.values("conversation")))
    lock_rows(rows)


def day_version(rows: Iterable[MemoryEntry]) -> str:
    """Return a tag that changes whenever an entry of the day is added, changed or removed."""
    said = "\n".join(f"{row.pk} {row.revision}" for row in rows)
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def proposed_entries(user: User) -> QuerySet[MemoryEntry]:
    """Return the entries that wait for the user's approval."""
    rows = MemoryEntry.objects.filter(user=user, state=MemoryEntry.State.PROPOSED)
    return _with_sources(rows.select_related("scope"))


def stale_mark_ids(user_id: UUID, day: date) -> list[int]:
    return list(StaleDay.objects.filter(user_id=user_id, day=day).values_list("id", flat=True))


def outdated_days(limit: int = 1000) -> list[tuple[UUID, date]]:
    """Return (user id, day) of days whose file lacks an entry or is marked as stale."""
    unwritten = (
        kept_entries().filter(written_at=None).order_by("created_at", "pk").values_list("user_id", "day")
    )
    return list(dict.fromkeys([*unwritten[:limit], *stale_days(limit)]))


def stale_days(limit: int | None = None) -> list[tuple[UUID, date]]:
    """Return (user id, day) of days whose file is marked as stale; with a limit, those of the oldest marks."""
    marks = StaleDay.objects.order_by("id").values_list("user_id", "day")
    return list(dict.fromkeys(marks[:limit]))


def all_days(user_id: UUID) -> list[date]:
    return list(
        kept_entries().filter(user_id=user_id).values_list("day", flat=True).distinct().order_by("day")
    )


def entry_history(entry: MemoryEntry) -> list[EntryRevision]:
    """Return the texts of an entry, newest first: the current one, as an unsaved row, and the earlier ones."""
    current = EntryRevision(
        number=entry.revision, text=entry.text, author=entry.author, written_at=entry.updated_at
    )
    return [current, *entry.revisions.order_by("-number")]


def entry_of(user_id: UUID | str, entry_id: str) -> MemoryEntry:
    """Return a kept entry of the user. Raise NotFound."""
    rows = kept_entries().filter(user_id=parse_id(user_id))
    return find_row(rows.select_related("conversation", "user"), entry_id)


@dataclass(slots=True)
class DayStats:
    """The counts of one day. `entry_tokens` are what its entries would take in a context."""

    entry_count: int = 0
    entry_tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


def memory_stats(user: User, first: date, last: date) -> dict[date, DayStats]:
    """Return the counts by day, oldest first, without days that have none."""
    days: dict[date, DayStats] = defaultdict(DayStats)
    entries = kept_entries().filter(user=user, day__gte=first, day__lte=last)
    for day, text in entries.values_list("day", "text").iterator():
        days[day].entry_count += 1
        days[day].entry_tokens += estimate_text(text)
    zone = user.zone
    start = datetime.combine(first, time.min, zone)
    end = datetime.combine(last + timedelta(days=1), time.min, zone)
    used = Usage.objects.filter(user=user, created_at__gte=start, created_at__lt=end)
    by_day = used.annotate(day=TruncDate("created_at", tzinfo=zone)).values("day").order_by("day")
    for row in by_day.annotate(read=Sum("input_tokens"), written=Sum("output_tokens")):
        days[row["day"]].input_tokens = row["read"]
        days[row["day"]].output_tokens = row["written"]
    return dict(sorted(days.items()))


NEWEST_ENTRIES = 2_000


def known_texts(compaction: Compaction, *, first_id: UUID, last_id: UUID) -> Iterator[tuple[str, str]]:
    """Yield (entry id, text) of the user's entries, newest first, without the entry of this span. In a scope, only of
    the user's entries there, because the scope must not know anything else about the user."""
    conversation = compaction.conversation
    of_span = Q(compaction=compaction) | Q(first_message_id=first_id, last_message_id=last_id)
    # Include proposed entries, so that they are not proposed again.
    rows = MemoryEntry.objects.filter(user=conversation.user_id).exclude(of_span)
    if conversation.scope_id is not None:
        rows = rows.filter(scope=conversation.scope_id)
    newest = rows.order_by("-created_at", "-pk").values_list("pk", "text")
    for entry_id, text in newest[:NEWEST_ENTRIES].iterator():
        yield str(entry_id), text


def corrected_texts(compaction: Compaction) -> Iterator[tuple[str, str]]:
    """Yield ("", text) of former texts of edited entries about the same messages. They must not be learned from these
    messages again."""
    others = entries_of_the_same(compaction).exclude(compaction=compaction)
    edited = others.exclude(author=MemoryEntry.Author.EXTRACTION)
    texts = EntryRevision.objects.filter(entry__in=edited).values_list("text", flat=True)
    for text in texts.iterator():
        yield "", text


def entries_of_the_same(compaction: Compaction) -> QuerySet[MemoryEntry]:
    """Return the entries of this compaction, and of compactions of the same branch that share messages with it."""
    return MemoryEntry.objects.filter(
        compaction__branch=compaction.branch_id,
        compaction__first_position__lte=compaction.last_position,
        compaction__last_position__gte=compaction.first_position,
    )


def recalled_texts(
    compaction: Compaction, read_said: Callable[[], KnownSentences]
) -> Iterator[tuple[str, str]]:
    """Yield ("", text) of messages and entries recalled in the conversation, so that they are not learned as news.
    Messages of the span itself are news, even if they were recalled later. So are sentences that the user said again
    there (`read_said`), unless a recalled entry contains them."""
    recalls = Event.objects.filter(conversation=compaction.conversation_id, type="recall")
    sources = [
        item["source"] for payload in recalls.values_list("payload", flat=True) for item in payload["items"]
    ]
    of_span = Q(
        conversation=compaction.conversation_id,
        position__gte=compaction.first_position,
        position__lte=compaction.last_position,
    )
    messages = Message.objects.filter(pk__in=_named(sources, "message_id")).exclude(of_span)
    if recalled := list(messages.values_list("parts", flat=True)):
        # Called only here, because folding all that the user said is slow, and mostly nothing was recalled.
        said = read_said()
        for parts in recalled:
            sentences = split_sentences(message_values.text_of(parts))
            yield "", "".join(one for one in sentences if said.find(one) is None)
    entries = MemoryEntry.objects.filter(pk__in=_named(sources, "entry_id"))
    for text in entries.values_list("text", flat=True).iterator():
        yield "", text


def _named(sources: Iterable[Mapping[str, str]], name: str) -> set[str]:
    return {source[name] for source in sources if name in source}
