"""Which tests run on which database.

All of them run on SQLite, except those marked `postgres`. On PostgreSQL and Redis only those run again whose subject can
differ there, except those marked `sqlite`: statements, locks, what is committed when, JSON, search, forgetting, runs and what reaches other processes.
What checks, renders, parses, ranks or asks a model gets the same rows from both: such tests of these files are marked
`sqlite`, where others of them run the same statements.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from django.test import TransactionTestCase

ROOT = Path(__file__).parent

ON_BOTH = (
    "accounts/test_disconnecting.py",
    "admin/test_every_page.py",
    "api/test_branches.py",
    "api/test_conversations.py",
    "api/test_deleted_meanwhile.py",
    "api/test_events.py",
    "api/test_every_address.py",
    "api/test_idempotency.py",
    "api/test_import_export.py",
    "api/test_made_once.py",
    "api/test_message_pages.py",
    "api/test_odd_dates.py",
    "api/test_order_of_pages.py",
    "api/test_runs_taken_over.py",
    "api/test_sending.py",
    "api/test_sent_meanwhile.py",
    "budgets/test_holding.py",
    "budgets/test_stopping.py",
    "chat",
    "context_engine/test_branch_properties.py",
    "context_engine/test_checkpoints.py",
    "context_engine/test_ledger.py",
    "context_engine/test_loading.py",
    "context_engine/test_pins.py",
    "files/test_attachments.py",
    "forgetting",
    "large_work",
    "memory_store/test_consolidating.py",
    "memory_store/test_days.py",
    "memory_store/test_deletion.py",
    "memory_store/test_entries_api.py",
    "memory_store/test_full_days.py",
    "memory_store/test_rebuilding.py",
    "memory_store/test_shared_memory.py",
    "memory_store/test_summarised_again.py",
    "plans/test_plan_mode.py",
    "search",
    "tools/test_offloads.py",
)
"""Folders and files of `tests`. A test below them that needs no database runs once all the same."""

FIXTURES = {"db", "transactional_db", "django_db_reset_sequences"}
PLACES = frozenset(ROOT / place for place in ON_BOTH)


@cache
def is_on_both(path: Path) -> bool:
    return any(place in PLACES for place in (path, *path.parents))


def touches_database(item: pytest.Item) -> bool:
    """Whether the test itself does, and not only the processes that it starts."""
    case = getattr(item, "cls", None)
    return bool(
        item.get_closest_marker("django_db")
        or FIXTURES & set(getattr(item, "fixturenames", ()))
        or (case and issubclass(case, TransactionTestCase))
    )


def has_nothing_to_run(path: Path, config: pytest.Config) -> bool:
    """Whether `-m databases` on PostgreSQL would leave out every test of the file: then it is not imported."""
    is_second_run = config.getoption("database") == "postgres" and config.getoption("markexpr") == "databases"
    return is_second_run and not is_on_both(path) and "mark.postgres" not in path.read_text()
