"""Forgetting reaches the conversations of others that were told it by a shared memory, inside the transaction that
forgets and with them locked: copies go, what their users said themselves stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from chatapp.conversations import message_values
from chatapp.conversations.models import Conversation, Message
from chatapp.files.actions import delete_all_offloads
from chatapp.forgetting.actions import traces
from chatapp.forgetting.actions.clock import begin_forgetting
from chatapp.forgetting.actions.deletion import Leftovers
from chatapp.forgetting.actions.profile import redact_profile
from chatapp.forgetting.actions.reach import lock_reach
from chatapp.forgetting.selectors.citing import citing_conversations
from chatapp.forgetting.selectors.forgotten import said_with
from chatapp.long_term.access import lock_shared_entry
from chatapp.long_term.actions import entries as memory_actions
from chatapp.long_term.actions.tombstones import raise_tombstones
from chatapp.long_term.models import EntryRevision, MemoryEntry
from chatapp.long_term.selectors.profile import edits_of
from chatapp.long_term.selectors.scopes import others_in_scopes, scopes_of
from chatapp.operations.errors import NotFound
from chatapp.recall.actions.indexing import unshare_entries
from chatapp.recall.analysis import vocabulary
from memory.hygiene import KnownSentences
from memory.redaction import Forgotten


@dataclass(slots=True)
class SharedWork:
    """What was taken out of the conversations of others."""

    removed: Counter[str] = field(default_factory=Counter)
    ended_runs: list[UUID] = field(default_factory=list)
    leftovers: list[Leftovers] = field(default_factory=list)


def told_to_others(user_id: UUID, ids: Iterable[UUID], texts: Sequence[str]) -> set[UUID]:
    """Conversations of others that were told some of it; the one cost of a user who shares nothing is a look."""
    scopes = scopes_of(user_id)
    return citing_conversations(others_in_scopes(scopes, user_id), ids, texts) if scopes else set()


@dataclass(frozen=True, slots=True)
class Shared:
    """Of some entries those that are or were shared: what they say, and said before an edit, and who was told."""

    ids: Set[UUID]
    texts: Sequence[str]
    told: Set[UUID]
    homes: Set[UUID]


def shared_of(user_id: UUID, entries: QuerySet[MemoryEntry]) -> Shared:
    shared = entries.filter(shared_in__isnull=False)
    ids = set(shared.values_list("pk", flat=True))
    if not ids:
        return Shared(ids, (), set(), set())
    earlier = EntryRevision.objects.filter(entry__in=ids).values_list("text", flat=True)
    texts = [*shared.values_list("text", flat=True), *earlier]
    homes = Conversation.objects.filter(memory_entries__in=ids).values_list("pk", flat=True)
    return Shared(ids, texts, told_to_others(user_id, ids, texts), set(homes))


def forget_shared_entries(shared: Shared, rows: Iterable[Conversation], now: datetime) -> SharedWork:
    """What others were told goes; they are shared no more. Whoever calls this has locked whatever that reaches, the
    conversations of others among `rows`."""
    MemoryEntry.objects.filter(pk__in=shared.ids).update(scope=None)
    unshare_entries(shared.ids)
    told = [row for row in rows if row.pk in shared.told]
    return forget_shared(told, shared.texts, shared.ids, now)


@transaction.atomic
def unshare_entry(*, entry_id: UUID, now: datetime) -> SharedWork:
    """By an operator: nobody else knows it any more, and what others were told goes. It stays its user's own."""
    said_by = MemoryEntry.objects.filter(pk=entry_id).values_list("user_id", flat=True).first()
    if said_by is None:
        raise NotFound
    begin_forgetting(said_by)
    entries = MemoryEntry.objects.filter(pk=entry_id)
    shared = shared_of(said_by, entries)
    rows = lock_reach(said_by, shared.told | shared.homes, entries, now)
    lock_shared_entry(entry_id)
    return forget_shared_entries(shared, rows, now)


def forget_shared(
    rows: Iterable[Conversation], texts: Sequence[str], gone: Collection[UUID], now: datetime
) -> SharedWork:
    """`rows` are the locked conversations of others; `gone` are the ids of what is forgotten."""
    work = SharedWork()
    users: set[UUID] = set()
    for row in rows:
        work.ended_runs += traces.stop_work(row, now)
        _forget_in(row, texts, gone, work, now)
        users.add(row.owner_id)
    for user_id in sorted(users):
        _forget_in_profile(user_id, texts, now)
    return work


def _forget_in_profile(user_id: UUID, texts: Sequence[str], now: datetime) -> None:
    """After their entries, of which it may have been made. What they wrote there, or say anywhere, stays. Not counted:
    what others know is not told."""
    telling = Forgotten(texts, vocabulary).telling_words
    forgotten = _not_said(texts, [*said_with(user_id, telling), *edits_of(user_id).own])
    redact_profile(user_id, forgotten, now)
    traces.forget_sent_profiles(user_id, forgotten)


def _not_said(texts: Sequence[str], said: Sequence[str]) -> Forgotten:
    """The texts, as far as nobody says so in these."""
    common = frozenset[str]().union(*map(vocabulary.telling_words, said))
    said_too = KnownSentences(vocabulary, (("", text) for text in said))
    return Forgotten(texts, vocabulary, common=common, is_spared=lambda one: said_too.find(one) is not None)


def _forget_in(
    row: Conversation, texts: Sequence[str], gone: Collection[UUID], work: SharedWork, now: datetime
) -> None:
    said = Message.objects.filter(conversation=row, role=Message.Role.USER)
    forgotten = _not_said(
        texts, [message_values.text_of(parts) for parts in said.values_list("parts", flat=True)]
    )
    work.removed["events"] += traces.redact_events(row, forgotten, changed={}, gone=gone)
    work.removed["summaries_redacted"] += traces.redact_compactions(row, forgotten)
    work.removed["requests"] += traces.redact_runs(row, forgotten)
    work.removed["messages_redacted"] += traces.redact_copies(row, forgotten, work.ended_runs, now)
    days, count = traces.redact_entries(row, forgotten)
    work.removed["entries_redacted"] += count
    memory_actions.mark_days_stale(row.owner_id, days)
    traces.redact_conversation(row, forgotten, now)
    # What an answer recited is not learned from there either.
    raise_tombstones(row.owner_id, (part for text in texts for part in forgotten.carried(text)), now)
    # What was offloaded may say it too, and is nobody's but the model's.
    files = tuple(delete_all_offloads([row.pk]))
    work.leftovers.append(Leftovers(row.owner_id, tuple(sorted(days)), offloads=files))
