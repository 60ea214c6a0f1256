"""Marks that something was deleted whose bytes may still lie in the database's files."""

from __future__ import annotations

from chatapp.models import PurgeMark


def mark_purge() -> None:
    """Called in the transaction that deletes."""
    PurgeMark.objects.create()


def clear_purge_marks(upto: int) -> None:
    PurgeMark.objects.filter(pk__lte=upto).delete()
