"""Deletes rows a few at a time."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from chatapp.pieces import Spending

AT_ONCE = 50


def delete_some(rows: QuerySet[Any], spending: Spending, at_once: int = AT_ONCE) -> bool:
    """Called in a transaction: delete until nothing or no budget is left; return whether nothing is left.

    Finding nothing costs no budget, and something is always deleted: so the work goes on however slow the machine is.
    """
    while some := list(rows.values_list("pk", flat=True)[: max(1, min(at_once, spending.rows_left))]):
        rows.model._default_manager.filter(pk__in=some).delete()
        spending.spend(len(some))
        if spending.is_spent:
            return False
    return True
