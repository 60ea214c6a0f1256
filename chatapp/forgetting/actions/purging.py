"""Marks that something was deleted whose bytes may still lie in the database's files."""

from __future__ import annotations

from django.db.models import QuerySet
from django.db.models.expressions import RawSQL

from chatapp.forgetting.models import PurgeMark


def mark_purge() -> None:
    """Called in the transaction that deletes."""
    PurgeMark.objects.create()


def note_horizons(upto: int) -> None:
    """On PostgreSQL, of marks that are committed, and what was deleted with them. Not to be known when they are made:
    what a transaction does within savepoints has higher numbers than its own."""
    horizon = RawSQL("pg_snapshot_xmax(pg_current_snapshot())::text::bigint", [])
    PurgeMark.objects.filter(pk__lte=upto, horizon=None).update(horizon=horizon)


def clear_purge_marks(marks: QuerySet[PurgeMark]) -> None:
    marks.delete()
