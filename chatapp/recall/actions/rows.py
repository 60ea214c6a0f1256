"""The bulk writes of the search index, each in the way that is quickest on its database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection
from django.db.models import Model

from chatapp.recall.models import SearchDocument, SearchOwner, SearchPosting


def insert_documents(rows: Sequence[SearchDocument]) -> None:
    """Called in a transaction. The rows do not learn their primary keys."""
    if connection.vendor != "postgresql":
        SearchDocument.objects.bulk_create(rows)
        return
    fields = [field for field in SearchDocument._meta.concrete_fields if not field.primary_key]
    names = ", ".join(connection.ops.quote_name(str(field.column)) for field in fields)
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {_table(SearchDocument)} ({names}) FROM STDIN") as copy,
    ):
        for row in rows:
            copy.write_row([getattr(row, field.attname) for field in fields])


def append_postings(owner: SearchOwner, number: int, gained: Mapping[int, bytes]) -> None:
    """A term that is known in the block gets the new postings behind its old ones."""
    table, binary = _table(SearchPosting), connection.data_types["BinaryField"]
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
    """`(entries, primary key)` of each: one statement for all costs ten times as much in Django's way."""
    with connection.cursor() as cursor:
        cursor.executemany(f"UPDATE {_table(SearchPosting)} SET entries = %s WHERE id = %s", rows)


def _table(model: type[Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)
