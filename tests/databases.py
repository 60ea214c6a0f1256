"""Which tests run on which database.

All tests run on SQLite, except those marked `postgres`. Only tests whose subject can differ on PostgreSQL and Redis run
there, too: statements, locks, the time of commits, JSON, search, forgetting, runs and what reaches other processes.
Tests in these files that check, render, parse, rank or call a model get the same rows from both databases. They are
marked `sqlite` and do not run again, if others run the same statements.
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
"""Folders and files of `tests`. A test in them that needs no database still runs only once."""

FIXTURES = {"db", "transactional_db", "django_db_reset_sequences"}
PLACES = frozenset(ROOT / place for place in ON_BOTH)


@cache
def is_on_both(path: Path) -> bool:
    return any(place in PLACES for place in (path, *path.parents))


def touches_database(item: pytest.Item) -> bool:
    """Return whether the test itself uses the database, and not only the processes that it starts."""
    case = getattr(item, "cls", None)
    return bool(
        item.get_closest_marker("django_db")
        or FIXTURES & set(getattr(item, "fixturenames", ()))
        or (case and issubclass(case, TransactionTestCase))
    )


def has_nothing_to_run(path: Path, config: pytest.Config) -> bool:
    """Return whether `-m databases` on PostgreSQL deselects every test of the file, so that it need not be imported."""
    is_second_run = config.getoption("database") == "postgres" and config.getoption("markexpr") == "databases"
    return is_second_run and not is_on_both(path) and "mark.postgres" not in path.read_text()
