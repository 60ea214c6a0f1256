"""Stores what users claim of things that change, and which claim supersedes which."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from uuid import UUID

from django.db.models import QuerySet

from chatapp.conversations import message_values
from chatapp.conversations.models import Message
from chatapp.long_term.models import MemoryEntry
from chatapp.operations.statements import update_rows
from chatapp.recall.models import StoredClaim
from chatapp.recall.selectors.claims import SaidAt, find_named, fold_sentence, hash_parts, hashed_claims


def note_messages(user_id: UUID, rows: Iterable[Message]) -> None:
    """Store the claims of messages in the transaction that indexes them, in place of their earlier ones.

    Only users' messages claim anything.
    """
    said = [row for row in rows if row.role == Message.Role.USER]
    store_message_claims(user_id, said, find_message_claims(user_id, said))


def find_message_claims(user_id: UUID, said: Iterable[Message]) -> list[StoredClaim]:
    """Return what messages of the user claim, unsaved: finding it takes too long for a transaction."""
    return [
        claim
        for row in said
        for claim in _claims(user_id, message_values.text_of(row.parts), row.created_at, message_id=row.pk)
    ]


def store_message_claims(user_id: UUID, said: Iterable[Message], claims: list[StoredClaim]) -> None:
    """Store claims in the transaction that indexes their messages, in place of their earlier ones."""
    _store(user_id, claims, _remove(StoredClaim.objects.filter(message__in=list(said))))


def note_entries(user_id: UUID, entries: Sequence[MemoryEntry]) -> None:
    """Store the claims of entries in the transaction that writes them. An extracted one repeats those of a message."""
    keys = _remove(StoredClaim.objects.filter(entry__in=[entry.pk for entry in entries]))
    is_own = [
        entry for entry in entries if entry.author == MemoryEntry.Author.USER and entry.compaction_id is None
    ]
    claims = [
        claim
        for entry in is_own
        for claim in _claims(user_id, entry.text, entry.created_at, entry_id=entry.pk)
    ]
    _store(user_id, claims, keys)


def note_over(user_id: UUID, pairs: Iterable[tuple[SaidAt, SaidAt]]) -> None:
    """Store pairs of an older and a newer statement that a model named, in the transaction that writes its summary or
    the profile.

    Pairs that were stored before stay; what was deleted or forgotten meanwhile claims nothing.
    """
    for older, newer in pairs:
        if not (_is_there(older) and _is_there(newer)):
            continue
        key = hash_parts(("named", older.words))
        known = StoredClaim.objects.filter(user_id=user_id, key=key)
        claims = [
            StoredClaim(
                user_id=user_id,
                message_id=said.message_id,
                entry_id=said.entry_id,
                start=said.start,
                end=said.end,
                key=key,
                value=hash_parts((said.words,)),
                is_named=True,
                replaces=said is newer,
                said_at=said.at,
            )
            for said in (older, newer)
            if not known.filter(message=said.message_id, entry=said.entry_id, start=said.start).exists()
        ]
        _store(user_id, claims, set())


def _is_there(said: SaidAt) -> bool:
    message = Message.objects.filter(pk=said.message_id).first() if said.message_id else None
    entry = MemoryEntry.objects.filter(pk=said.entry_id).first() if said.entry_id else None
    text = message_values.text_of(message.parts) if message else entry.text if entry else ""
    return fold_sentence(text[said.start : said.end]) == said.words


def _remove(claims: QuerySet[StoredClaim]) -> set[int]:
    """Delete claims, but not what a model named and is still said there, if at another place. Return the keys of those
    deleted."""
    gone: list[StoredClaim] = []
    moved: list[StoredClaim] = []
    for row in claims.select_related("message", "entry"):
        place = find_named(row)
        if place is None:
            gone.append(row)
        elif place != (row.start, row.end):
            row.start, row.end = place
            moved.append(row)
    update_rows(moved, "start", "end")
    if gone:
        StoredClaim.objects.filter(pk__in=[row.pk for row in gone]).delete()
    return {row.key for row in gone}


def _claims(user_id: UUID, text: str, said_at: datetime, **source: UUID) -> Iterator[StoredClaim]:
    for claim in hashed_claims(text):
        yield StoredClaim(
            user_id=user_id,
            start=claim.start,
            end=claim.end,
            key=claim.key,
            value=claim.value,
            replaces=claim.replaces,
            said_at=said_at,
            **source,
        )


def _store(user_id: UUID, claims: list[StoredClaim], keys: set[int]) -> None:
    StoredClaim.objects.bulk_create(claims)
    _order(user_id, keys | {claim.key for claim in claims})


def _order(user_id: UUID, keys: Collection[int]) -> None:
    """Set for each claim of these keys the next one that replaces it and says something else."""
    if not keys:
        return
    rows = StoredClaim.objects.filter(user_id=user_id, key__in=keys).order_by(
        "key", "-said_at", "-start", "-pk"
    )
    changed = [row for _, of_key in groupby(rows, lambda row: row.key) for row in _superseded_anew(of_key)]
    update_rows(changed, "superseded_by")


def _superseded_anew(rows: Iterable[StoredClaim]) -> Iterator[StoredClaim]:
    """Yield those of one key, newest first, that another one supersedes now."""
    next_one: StoredClaim | None = None
    next_other: StoredClaim | None = None
    for row in rows:
        newer = next_one if next_one is None or next_one.value != row.value else next_other
        if row.superseded_by_id != (newer.pk if newer else None):
            row.superseded_by = newer
            yield row
        if row.replaces:
            is_other = next_one is None or next_one.value != row.value
            next_one, next_other = row, next_one if is_other else next_other
