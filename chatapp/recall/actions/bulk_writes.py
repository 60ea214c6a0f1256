"""Bulk writes to the search index, with the fastest statement for each database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection

from chatapp.operations.database.statements import placeholders, run_prepared, table_name
from chatapp.recall.models import SearchDocument, SearchOwner, SearchPosting
from chatapp.recall.selectors.unindexed import StoredDocument


def insert_documents(rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert documents in the caller's transaction. A row is owner_id, ordinal, previous and the `StoredDocument`."""
    if not rows:
        return
    names = ", ".join(f'"{name}"' for name in ("owner_id", "ordinal", "previous", *StoredDocument._fields))
    table = table_name(SearchDocument)
    if connection.vendor != "postgresql":
        run_prepared([(f"INSERT INTO {table} ({names}) VALUES {placeholders(len(rows[0]))}", rows)])
        return
    with connection.cursor() as cursor, cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def append_postings(owner: SearchOwner, number: int, gained: Mapping[int, bytes]) -> None:
    """Append postings to terms of a block. Insert terms that the block does not have yet."""
    table, binary = table_name(SearchPosting), connection.data_types["BinaryField"]
    terms = sorted(gained)
    into = f"INSERT INTO {table} (owner_id, block, term, entries)"
    on_conflict = (
        f"ON CONFLICT (owner_id, term, block) DO UPDATE "
        # On SQLite, || returns text, even for two blobs.
        f"SET entries = CAST({table}.entries || excluded.entries AS {binary})"
    )
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            columns: list[Any] = [owner.pk, number, terms, [gained[term] for term in terms]]
            taken = (
                "SELECT %s, %s, term, entries FROM unnest(%s::bigint[], %s::bytea[]) AS new (term, entries)"
            )
            cursor.execute(f"{into} {taken} {on_conflict}", columns)
        else:
            rows = [(owner.pk, number, term, gained[term]) for term in terms]
            cursor.executemany(f"{into} VALUES (%s, %s, %s, %s) {on_conflict}", rows)


def update_postings(rows: Sequence[tuple[bytes, int]]) -> None:
    """Update postings by `(entries, primary key)`. Django's bulk_update takes ten times as long."""
    with connection.cursor() as cursor:
        cursor.executemany(f"UPDATE {table_name(SearchPosting)} SET entries = %s WHERE id = %s", rows)
