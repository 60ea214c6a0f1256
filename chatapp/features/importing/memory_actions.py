"""Writes the memory entries and the profile of an account export. No model is called, now or later: they count as
consolidated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from uuid import UUID

from django.db import transaction

from chatapp.accounts.models import User
from chatapp.features.importing.account import Account, Entry, ProfileVersion, Span
from chatapp.long_term import models
from chatapp.long_term.actions.profile import lock_profile, without_lines
from chatapp.long_term.actions.stale_days import mark_days_stale
from chatapp.long_term.selectors.tombstones import tombstones_of
from chatapp.operations.clock import iso_time
from chatapp.operations.database.forgetting_counts import lock_forgetting_counts
from chatapp.operations.database.statements import insert_rows, update_rows
from chatapp.operations.database.work_budget import Pace
from chatapp.recall.actions.indexing import index_entries

ENTRIES_AT_ONCE = 20

_Key = tuple[date, str | None, str]


ReadForgottenEntries = Callable[[], frozenset[str] | None]
"""Returns the ids of entries forgotten since the import began; None if everything was forgotten."""


def store_entries(
    *, user: User, account: Account, now: datetime, pace: Pace, gone: ReadForgottenEntries
) -> dict[str, str]:
    """Store the entries that are not here yet. Return the ids here of all, by their ids in the export."""
    known = _known_entries(user)
    ids: dict[str, str] = {}
    missing: list[Entry] = []
    for entry in _without_forgotten(user.pk, account.entries):
        if (found := known.get((entry.day, iso_time(entry.created_at), entry.text))) is not None:
            ids[entry.id] = str(found)
        else:
            missing.append(entry)
    left = iter(range(0, len(missing), ENTRIES_AT_ONCE))

    def store_some() -> bool:
        if (start := next(left, None)) is not None:
            ids.update(_store_some(user, account, missing[start : start + ENTRIES_AT_ONCE], now, gone))
        return start is None

    pace.work(store_some)
    return ids


def _without_forgotten(user_id: UUID, entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield entries, with their earlier texts, without sentences that must not be learned again."""
    barred = tombstones_of(user_id)
    for entry in entries:
        if not barred:
            yield entry
        elif text := barred.filter_text(entry.text):
            earlier = [
                each.model_copy(update={"text": barred.filter_text(each.text)}) for each in entry.earlier
            ]
            yield entry.model_copy(update={"text": text, "earlier": [each for each in earlier if each.text]})


def _known_entries(user: User) -> dict[_Key, UUID]:
    rows = models.MemoryEntry.objects.filter(user=user).values_list("pk", "day", "created_at", "text")
    return {(day, iso_time(at), text): pk for pk, day, at, text in rows.iterator()}


@transaction.atomic
def _store_some(
    user: User, account: Account, some: Sequence[Entry], now: datetime, gone: ReadForgottenEntries
) -> dict[str, str]:
    # A forgetting that has begun finishes first and is visible here; a later one finds the rows stored here.
    lock_forgetting_counts([user.pk])
    if (forgotten := gone()) is None:
        return {}
    left = _without_forgotten(user.pk, some)  # again: more may have been forgotten meanwhile
    entries = [entry for entry in left if entry.id not in forgotten]
    rows = [_row(user, account, entry, now) for entry in entries]
    insert_rows(rows)
    for row, entry in zip(rows, entries, strict=True):
        row.updated_at = entry.updated_at  # the insert set it to the present
    update_rows(rows, "updated_at")
    both = list(zip(rows, entries, strict=True))
    insert_rows([each for row, entry in both for each in _revisions(row, entry)])
    # Two sources of an export may be the same span here, but an entry has each once.
    insert_rows(
        [each for row, entry in both for each in _sources(row, entry, account)], on_conflict="DO NOTHING"
    )
    # A proposed entry waits for approval: until then it is neither indexed nor in a daily file.
    kept = [row for row in rows if row.state == models.MemoryEntry.State.KEPT]
    if kept:
        index_entries(user.pk, kept)
        mark_days_stale(user.pk, {row.day for row in kept})
    return {entry.id: str(row.pk) for row, entry in both}


def _row(user: User, account: Account, entry: Entry, now: datetime) -> models.MemoryEntry:
    return models.MemoryEntry(
        user=user,
        day=entry.day,
        **_span(entry, account),
        text=entry.text,
        author=entry.author,
        revision=entry.revision,
        state=entry.state,
        written_at=now,  # prevents a `memory.written` event; its day is marked instead
        consolidated_at=now,
        created_at=entry.created_at,
    )


def _revisions(row: models.MemoryEntry, entry: Entry) -> Iterator[models.EntryRevision]:
    # A file may contain a revision twice, but an entry has it once.
    for past in {each.revision: each for each in entry.earlier}.values():
        yield models.EntryRevision(
            entry=row, number=past.revision, text=past.text, author=past.author, written_at=past.written_at
        )


def _sources(row: models.MemoryEntry, entry: Entry, account: Account) -> Iterator[models.EntrySource]:
    for source in entry.sources:
        span = _span(source, account)
        if None not in span.values():
            yield models.EntrySource(entry=row, created_at=source.created_at, **span)


def _span(span: Span, account: Account) -> dict[str, UUID | None]:
    """Return the ids here of a span, by column; None for each part that is missing."""
    return {
        "conversation_id": account.conversations.get(span.conversation_id or ""),
        "first_message_id": account.messages.get(span.first_message_id or ""),
        "last_message_id": account.messages.get(span.last_message_id or ""),
    }


@transaction.atomic
def store_profile(
    *,
    user: User,
    versions: Sequence[ProfileVersion],
    entry_ids: Mapping[str, str],
    gone: ReadForgottenEntries,
) -> bool:
    """Store the profile with its history, without lines derived from forgotten text. Return False if the user has a
    different profile, which stays."""
    lock_forgetting_counts([user.pk])
    if (forgotten := gone()) is None:
        return True
    profile = lock_profile(user.pk)
    in_order = sorted({each.version: each for each in versions}.values(), key=lambda each: each.version)
    barred = tombstones_of(user.pk)

    def is_gone(line: str, made_of: Sequence[str]) -> bool:
        return not forgotten.isdisjoint(made_of) or barred.filter_text(line) != line

    kept = [(each, *without_lines(each.markdown, each.sources, is_gone)[:2]) for each in in_order]
    # The same profile is no conflict: the file may be imported again.
    if profile.version:
        return [profile.text] == [text for _, text, _ in kept[-1:]]
    for each, text, sources in kept:
        models.ProfileVersion.objects.create(
            profile=profile,
            number=each.version,
            text=text,
            sources=[[entry_ids[one] for one in line if one in entry_ids] for line in sources],
            author=each.author,
            created_at=each.created_at,
        )
    last = profile.versions.order_by("number").last()
    if last is not None:
        profile.text, profile.sources, profile.version = last.text, last.sources, last.number
        profile.save(update_fields=["text", "sources", "version"])
    return True
