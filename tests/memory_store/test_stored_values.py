"""Prepared SQL stores the same values as Django, column for column."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connection, models

from chatapp.accounts.models import User
from chatapp.forgetting.models import ForgetReceipt, Tombstone
from chatapp.long_term.models import EntryRevision, MemoryEntry
from chatapp.operations.database.statements import as_stored, insert_rows, table_name, update_row
from chatapp.recall.actions.indexing import index_entry
from chatapp.recall.models import SearchDocument, StoredClaim

pytestmark = pytest.mark.django_db

MOMENTS = (
    datetime(2026, 11, 20, 14, 5, tzinfo=ZoneInfo("Asia/Tokyo")),
    datetime(2026, 11, 20, 14, 5, 7, 250, tzinfo=UTC),
)


def stored(model: type[models.Model], *but: str) -> list[dict[str, Any]]:
    """Return all rows of a table as the database gives them, without the columns `but`."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table_name(model)} ORDER BY id")
        names = [column[0] for column in cursor.description or ()]
        return [
            {name: value for name, value in zip(names, row, strict=True) if name not in but}
            for row in cursor.fetchall()
        ]


@pytest.mark.parametrize("moment", MOMENTS)
def test_rows_are_stored_as_django_stores_them(alice: User, moment: datetime) -> None:
    def entry() -> MemoryEntry:
        return MemoryEntry(
            user=alice, day=moment.date(), text="I keep bees. 🐝", author="user", created_at=moment
        )

    saved, inserted = entry(), entry()
    saved.save()
    insert_rows([inserted])
    for row in (saved, inserted):
        row.author, row.consolidated_at = MemoryEntry.Author.OPERATOR, moment
    saved.save(update_fields=["author", "consolidated_at"])
    update_row(inserted, "author", "consolidated_at")
    first, second = stored(MemoryEntry, "id", "updated_at")
    assert first == second
    receipt = ForgetReceipt.objects.create(user=alice, what="entry", at=moment)
    for at, store in enumerate((lambda row: row.save(), lambda row: insert_rows([row]))):
        store(EntryRevision(entry=saved, number=at, text="", author="user", written_at=moment))
        store(
            Tombstone(
                user=alice,
                whole=at - 2**62,
                words=b"\x00\xff",
                for_good=True,
                receipt=receipt,
                created_at=moment,
            )
        )
    for model, own in ((EntryRevision, "number"), (Tombstone, "whole")):
        first, second = stored(model, "id", own)
        assert first == second, model


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("model", [SearchDocument, StoredClaim])
def test_index_rows_are_stored_as_django_stores_them(
    alice: User, moment: datetime, model: type[models.Model]
) -> None:
    entry = MemoryEntry.objects.create(
        user=alice, day=moment.date(), text="I live in Rome.", author="user", created_at=moment
    )
    index_entry(entry)
    inserted = stored(model)
    assert inserted
    for row in model._default_manager.all():
        row.save()
    assert stored(model) == inserted


def test_a_moment_passed_as_a_parameter_matches_the_stored_one(alice: User) -> None:
    for moment in MOMENTS:
        entry = MemoryEntry.objects.create(user=alice, day=moment.date(), text="It rains.", created_at=moment)
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT text FROM {table_name(MemoryEntry)} WHERE id = %s AND created_at = %s",
                [as_stored(entry.pk), as_stored(moment)],
            )
            assert cursor.fetchall() == [("It rains.",)]
