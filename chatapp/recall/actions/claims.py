"""Stores what users claim of things that change, and which claim supersedes which."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from uuid import UUID

from django.db.models import QuerySet

from chatapp.conversations import message_values
from chatapp.conversations.models import Message
from chatapp.long_term.models import MemoryEntry
from chatapp.operations.statements import delete_rows, insert_rows, update_rows
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
    _replace(user_id, "message_id", [row.pk for row in said], claims)


def note_entries(user_id: UUID, entries: Sequence[MemoryEntry]) -> None:
    """Store the claims of entries in the transaction that writes them, in place of their earlier ones."""
    store_entry_claims(user_id, [entry.pk for entry in entries], find_entry_claims(user_id, entries))


def find_entry_claims(user_id: UUID, entries: Iterable[MemoryEntry]) -> list[StoredClaim]:
    """Return what entries of the user claim, unsaved. An extracted one repeats the claims of a message."""
    return [
        claim
        for entry in entries
        if entry.author == MemoryEntry.Author.USER and entry.compaction_id is None
        for claim in _claims(user_id, entry.text, entry.created_at, entry_id=entry.pk)
    ]


def store_entry_claims(user_id: UUID, entry_ids: Sequence[UUID], claims: list[StoredClaim]) -> None:
    """Store claims in the transaction that writes their entries, in place of their earlier ones."""
    _replace(user_id, "entry_id", entry_ids, claims)


def drop_entry_claims(user_id: UUID, entry_ids: Collection[UUID]) -> None:
    """Delete what entries claim in the transaction that deletes them: what they superseded is superseded by the next
    one, if any."""
    rows = dict(StoredClaim.objects.filter(entry__in=entry_ids).values_list("pk", "key"))
    delete_rows(StoredClaim, rows)
    _order(user_id, set(rows.values()))


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
        insert_rows(claims)
        _order(user_id, {key})


def _is_there(said: SaidAt) -> bool:
    message = Message.objects.filter(pk=said.message_id).first() if said.message_id else None
    entry = MemoryEntry.objects.filter(pk=said.entry_id).first() if said.entry_id else None
    text = message_values.text_of(message.parts) if message else entry.text if entry else ""
    return fold_sentence(text[said.start : said.end]) == said.words


_WHAT = ("start", "end", "key", "value", "replaces", "said_at")


def _replace(user_id: UUID, kind: str, source_ids: Sequence[UUID], claims: list[StoredClaim]) -> None:
    """Store what messages or entries claim in place of what they claimed before. What they claim still stays as it is,
    and so does what a model named and is still said there, if at another place."""
    if not source_ids:
        return
    what_of = attrgetter(kind, *_WHAT)
    new = {what_of(claim): claim for claim in claims}
    before = StoredClaim.objects.filter(**{f"{kind}__in": source_ids})
    gone: dict[UUID, list[UUID]] = defaultdict(list)
    named: list[UUID] = []
    keys: set[int] = set()
    for pk, is_named, *what in before.values_list("pk", "is_named", kind, *_WHAT):
        if is_named:
            named.append(pk)
        elif new.pop(tuple(what), None) is None:
            gone[what[0]].append(pk)
            keys.add(what[3])
    if named:
        for row in _find_again(StoredClaim.objects.filter(pk__in=named)):
            gone[getattr(row, kind)].append(row.pk)
            keys.add(row.key)
    over: list[StoredClaim] = []
    added: list[StoredClaim] = []
    for claim in new.values():
        if former := gone[
            getattr(claim, kind)
        ]:  # a row that goes and one that comes write each index of the table
            claim.pk = former.pop()
            over.append(claim)
        else:
            added.append(claim)
    update_rows(over, "is_named", *_WHAT)
    delete_rows(StoredClaim, [pk for some in gone.values() for pk in some])
    insert_rows(added)
    _order(user_id, keys | {claim.key for claim in new.values()})


def _find_again(named: QuerySet[StoredClaim]) -> list[StoredClaim]:
    """Note at which place the source of each says it now, and return those that are said no more."""
    gone: list[StoredClaim] = []
    moved: list[StoredClaim] = []
    for row in named.select_related("message", "entry"):
        place = find_named(row)
        if place is None:
            gone.append(row)
        elif place != (row.start, row.end):
            row.start, row.end = place
            moved.append(row)
    update_rows(moved, "start", "end")
    return gone


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


def _order(user_id: UUID, keys: Collection[int]) -> None:
    """Set for each claim of these keys the next one that replaces it and says something else."""
    if not keys:
        return
    rows = StoredClaim.objects.filter(user_id=user_id, key__in=keys).order_by(
        "key", "-said_at", "-start", "-pk"
    )
    ordered = rows.values_list("pk", "key", "value", "replaces", "superseded_by")
    changed = [row for _, of_key in groupby(ordered, lambda row: row[1]) for row in _superseded_anew(of_key)]
    update_rows(changed, "superseded_by")


def _superseded_anew(rows: Iterable[tuple[UUID, int, int, bool, UUID | None]]) -> Iterator[StoredClaim]:
    """Yield those of one key, newest first, that another one supersedes now."""
    next_one: tuple[UUID, int] | None = None
    next_other: tuple[UUID, int] | None = None
    for pk, _, value, replaces, superseded_by in rows:
        newer = next_one if next_one is None or next_one[1] != value else next_other
        if superseded_by != (newer[0] if newer else None):
            yield StoredClaim(pk=pk, superseded_by_id=newer[0] if newer else None)
        if replaces:
            is_other = next_one is None or next_one[1] != value
            next_one, next_other = (pk, value), next_one if is_other else next_other
