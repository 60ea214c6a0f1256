"""Stores users' claims about things that change, and which claim supersedes which."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, Literal, NamedTuple, TypeAlias
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from chatapp.conversations import message_values
from chatapp.conversations.models import Message
from chatapp.long_term.models import MemoryEntry
from chatapp.operations.database.access import lock_rows
from chatapp.operations.database.ids import new_id
from chatapp.operations.database.statements import (
    as_key,
    as_stored,
    execute_stored,
    insert_rows,
    placeholders,
    run_prepared,
    update_rows,
)
from chatapp.recall.models import SearchOwner, StoredClaim
from chatapp.recall.selectors.claims import (
    StatementPlace,
    find_named,
    fold_sentence,
    hash_parts,
    hashed_claims,
)

_Key: TypeAlias = UUID | str
_Ordered: TypeAlias = tuple[_Key, int, int, bool, _Key | None]
"""The stored columns that decide which claim supersedes which: id, key, value, replaces, superseded_by."""


class NewClaim(NamedTuple):
    """A claim that is not stored yet, as raw column values. Creating three thousand model instances would take up most
    of a transaction, so these are built before it."""

    id: _Key
    user_id: _Key
    message_id: _Key | None
    entry_id: _Key | None
    start: int
    end: int
    key: int
    value: int
    replaces: bool
    said_at: datetime | str
    is_named: bool = False
    superseded_by_id: None = None


def note_messages(user_id: UUID, rows: Iterable[Message]) -> None:
    """Replace the claims of messages, in the transaction that indexes them. Only users' messages have claims."""
    said = [row for row in rows if row.role == Message.Role.USER]
    replace_claims(user_id, "message_id", [row.pk for row in said], find_message_claims(user_id, said))


def find_message_claims(user_id: UUID, said: Iterable[Message]) -> list[NewClaim]:
    """Return the claims in messages of the user. Parsing many messages takes too long for a transaction."""
    return [
        claim
        for row in said
        for claim in _claims(user_id, message_values.text_of(row.parts), row.created_at, message_id=row.pk)
    ]


def note_entries(user_id: UUID, entries: Sequence[MemoryEntry]) -> None:
    """Replace the claims of entries, in the transaction that writes them."""
    replace_claims(user_id, "entry_id", [entry.pk for entry in entries], find_entry_claims(user_id, entries))


def find_entry_claims(user_id: UUID, entries: Iterable[MemoryEntry]) -> list[NewClaim]:
    """Return the claims in entries that the user wrote. Extracted entries only repeat claims of messages."""
    return [
        claim
        for entry in entries
        if entry.author == MemoryEntry.Author.USER and entry.compaction_id is None
        for claim in _claims(user_id, entry.text, entry.created_at, entry_id=entry.pk)
    ]


@transaction.atomic(savepoint=False)  # an error rolls back an outer transaction, too
def store_superseded_pairs(user_id: UUID, pairs: Iterable[tuple[StatementPlace, StatementPlace]]) -> None:
    """Store pairs of an older and a newer statement that a model named, in the transaction that writes its summary or
    the profile.

    Skip pairs that are stored already, and pairs with a text that was deleted or forgotten meanwhile.
    """
    if not (pairs := list(pairs)):
        return
    # Lock the index, as all writers of claims do, so that concurrent writers see each other's claims.
    lock_rows(SearchOwner.objects.filter(user=user_id))
    for older, newer in pairs:
        if not (_is_there(older) and _is_there(newer)):
            continue
        # Use a separate key, so that models and rules do not supersede each other's claims.
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


def _is_there(said: StatementPlace) -> bool:
    message = Message.objects.filter(pk=said.message_id).first() if said.message_id else None
    entry = MemoryEntry.objects.filter(pk=said.entry_id).first() if said.entry_id else None
    text = message_values.text_of(message.parts) if message else entry.text if entry else ""
    return fold_sentence(text[said.start : said.end]) == said.words


_WHAT = ("start", "end", "key", "value", "replaces", "said_at")
_COLUMNS = ", ".join(f'"{name}"' for name in NewClaim._fields)
_READ = ", ".join(f'"{name}"' for name in _WHAT)
_WRITTEN = ", ".join(f'"{name}" = %s' for name in (*_WHAT, "is_named"))


def replace_claims(
    user_id: UUID,
    kind: Literal["message_id", "entry_id"],
    source_ids: Collection[UUID],
    claims: Iterable[NewClaim] = (),
    *,
    keeps_named: bool = True,
) -> None:
    """Replace the claims of these messages or entries, in the transaction that writes, indexes or deletes them. Ignore
    claims of other sources. The next newer claims, if any, then supersede what deleted ones superseded.

    Keep unchanged claims and, with `keeps_named`, claims that a model named as long as the source still contains them,
    even at another place.
    """
    if not source_ids:
        return
    sources = {as_stored(pk) for pk in source_ids}
    what_of = attrgetter(kind, *_WHAT)
    new = {what_of(claim): claim for claim in claims if getattr(claim, kind) in sources}
    gone: dict[_Key, list[_Key]] = defaultdict(list)
    named: list[UUID] = []
    keys: set[int] = set()
    sql = f"SELECT id, is_named, {kind}, {_READ} FROM chatapp_storedclaim WHERE {kind} IN "
    for pk, is_named, *what in execute_stored(sql + placeholders(len(sources)), [*sources]).fetchall():
        if is_named and keeps_named:
            named.append(as_key(pk))
        elif new.pop(tuple(what), None) is None:
            gone[what[0]].append(pk)
            keys.add(what[3])
    if named:
        for row in _find_again(StoredClaim.objects.filter(pk__in=named)):
            gone[as_stored(getattr(row, kind))].append(as_stored(row.pk))
            keys.add(row.key)
    over: list[tuple[Any, ...]] = []
    added: list[NewClaim] = []
    for claim in new.values():
        if former := gone[getattr(claim, kind)]:  # deleting and inserting would write each index twice
            over.append((*what_of(claim)[1:], claim.is_named, former.pop()))
        else:
            added.append(claim)
    _execute_many(f"UPDATE chatapp_storedclaim SET {_WRITTEN} WHERE id = %s", over)
    _execute_many(
        "DELETE FROM chatapp_storedclaim WHERE id = %s", [(pk,) for some in gone.values() for pk in some]
    )
    into = f"INSERT INTO chatapp_storedclaim ({_COLUMNS}) VALUES {placeholders(len(NewClaim._fields))}"
    _execute_many(into, added)
    # Include the keys of deleted claims: what they superseded may hold again.
    _order(user_id, keys | {claim.key for claim in new.values()})


def _execute_many(sql: str, rows: Sequence[Sequence[Any]]) -> None:
    if rows:
        run_prepared([(sql, rows)])


def _find_again(named: QuerySet[StoredClaim]) -> list[StoredClaim]:
    """Update the place of each claim in its source; return the claims that the source does not contain any more."""
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


def _claims(
    user_id: UUID,
    text: str,
    said_at: datetime,
    *,
    message_id: UUID | None = None,
    entry_id: UUID | None = None,
) -> Iterator[NewClaim]:
    found = hashed_claims(text)
    if not found:
        return
    user, moment = as_stored(user_id), as_stored(said_at)
    message, entry = message_id and as_stored(message_id), entry_id and as_stored(entry_id)
    for one in found:
        key, value = one.key, one.value
        yield NewClaim(
            as_stored(new_id()), user, message, entry, one.start, one.end, key, value, one.replaces, moment
        )


def _order(user_id: UUID, keys: Collection[int]) -> None:
    """Set `superseded_by` of claims with these keys: the next claim that denies them or replaces their value."""
    if not keys:
        return
    sql = "SELECT id, key, value, replaces, superseded_by_id FROM chatapp_storedclaim WHERE user_id = %s AND key IN"
    # The id comes last, so that claims of the same moment have one order on every database.
    sql = f'{sql} {placeholders(len(keys))} ORDER BY key, said_at DESC, "start" DESC, id DESC'
    rows = execute_stored(sql, [as_stored(user_id), *keys]).fetchall()
    changed = [row for _, of_key in groupby(rows, lambda row: row[1]) for row in _superseded_anew(of_key)]
    _execute_many("UPDATE chatapp_storedclaim SET superseded_by_id = %s WHERE id = %s", changed)


def _superseded_anew(rows: Iterable[_Ordered]) -> Iterator[tuple[_Key | None, _Key]]:
    """Yield (id of the newer claim or None, id of the claim) for each claim whose stored `superseded_by` is outdated.

    `rows` are the claims of one key, newest first.
    """
    next_one: tuple[int, _Ordered] | None = None
    next_other: tuple[int, _Ordered] | None = None
    nearest: dict[int, tuple[int, _Ordered]] = {}
    for at, row in enumerate(rows):
        pk, _, value, replaces, superseded_by = row
        # A claim is not superseded by a repetition of its value, but by the next different value.
        replacing = next_one if next_one is None or next_one[1][2] != value else next_other
        # A denial has the complement of the value it denies, and supersedes only that value.
        opposite = nearest.get(~value)
        _, newer = max(filter(None, (replacing, opposite)), key=itemgetter(0), default=(0, None))
        if superseded_by != (newer[0] if newer else None):
            yield (newer[0] if newer else None), pk
        nearest[value] = at, row
        if replaces:
            is_other = next_one is None or next_one[1][2] != value
            next_one, next_other = (at, row), next_one if is_other else next_other
