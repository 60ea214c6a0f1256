"""Stores what users claim of things that change, and which claim supersedes which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from chatapp.conversations import message_values
from chatapp.conversations.models import Message
from chatapp.long_term.models import MemoryEntry
from chatapp.recall.analysis import vocabulary
from chatapp.recall.models import StoredClaim
from chatapp.recall.selectors.claims import SaidAt, hash_parts, is_still_named
from memory.claims import find_claims


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


def note_entry(entry: MemoryEntry) -> None:
    """Store the claims of an entry in the transaction that writes it. An extracted one repeats those of a message."""
    keys = _remove(StoredClaim.objects.filter(entry=entry))
    is_own = entry.author == MemoryEntry.Author.USER and entry.compaction_id is None
    claims = list(_claims(entry.user_id, entry.text, entry.created_at, entry_id=entry.pk)) if is_own else []
    _store(entry.user_id, claims, keys)


def note_over(user_id: UUID, pairs: Iterable[tuple[SaidAt, SaidAt]]) -> None:
    """Store pairs of an older and a newer statement that a model named, in the transaction that writes the profile.

    Pairs that were stored before stay; what was deleted meanwhile claims nothing.
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
    if said.message_id is not None:
        return Message.objects.filter(pk=said.message_id).exists()
    return said.entry_id is not None and MemoryEntry.objects.filter(pk=said.entry_id).exists()


def _remove(claims: QuerySet[StoredClaim]) -> set[int]:
    """Delete claims, but not what a model named and is still said there; return the keys of those deleted."""
    gone = [row for row in claims.select_related("message", "entry") if not is_still_named(row)]
    StoredClaim.objects.filter(pk__in=[row.pk for row in gone]).delete()
    return {row.key for row in gone}


def _claims(user_id: UUID, text: str, said_at: datetime, **source: UUID) -> Iterator[StoredClaim]:
    for claim in find_claims(text, vocabulary):
        yield StoredClaim(
            user_id=user_id,
            start=claim.start,
            end=claim.end,
            key=hash_parts(claim.key),
            value=hash_parts(claim.value),
            replaces=claim.replaces,
            said_at=said_at,
            **source,
        )


def _store(user_id: UUID, claims: list[StoredClaim], keys: set[int]) -> None:
    StoredClaim.objects.bulk_create(claims)
    for key in keys | {claim.key for claim in claims}:
        _order(user_id, key)


def _order(user_id: UUID, key: int) -> None:
    """Set for each claim of this key the next one that replaces it and says something else."""
    next_one: StoredClaim | None = None
    next_other: StoredClaim | None = None
    changed = []
    for row in StoredClaim.objects.filter(user_id=user_id, key=key).order_by("-said_at", "-start", "-pk"):
        newer = next_one if next_one is None or next_one.value != row.value else next_other
        if row.superseded_by_id != (newer.pk if newer else None):
            row.superseded_by = newer
            changed.append(row)
        if row.replaces:
            is_other = next_one is None or next_one.value != row.value
            next_one, next_other = row, next_one if is_other else next_other
    StoredClaim.objects.bulk_update(changed, ["superseded_by"], batch_size=200)
