"""Bulk writes to the search index, with the statement that is fastest on each database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection

from chatapp.operations.statements import insert_rows, table_name
from chatapp.recall.models import SearchDocument, SearchOwner, SearchPosting


def insert_documents(rows: Sequence[SearchDocument]) -> None:
    """Insert documents, in a transaction of the caller. The rows do not get their primary keys."""
    if connection.vendor != "postgresql":
        insert_rows(rows)
        return
    fields = [field for field in SearchDocument._meta.concrete_fields if not field.primary_key]
    names = ", ".join(connection.ops.quote_name(str(field.column)) for field in fields)
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table_name(SearchDocument)} ({names}) FROM STDIN") as copy,
    ):
        for row in rows:
            copy.write_row([getattr(row, field.attname) for field in fields])


def append_postings(owner: SearchOwner, number: int, gained: Mapping[int, bytes]) -> None:
    """Append postings to the terms of a block; a term that the block does not have yet is inserted."""
    table, binary = table_name(SearchPosting), connection.data_types["BinaryField"]
    terms = sorted(gained)
    into = f"INSERT INTO {table} (owner_id, block, term, entries)"
    on_conflict = (
        f"ON CONFLICT (owner_id, term, block) DO UPDATE "
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
    """Update postings by `(entries, primary key)`: Django's bulk_update takes ten times as long."""
    with connection.cursor() as cursor:
        cursor.executemany(f"UPDATE {table_name(SearchPosting)} SET entries = %s WHERE id = %s", rows)
