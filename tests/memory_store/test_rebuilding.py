"""`manage.py rebuild_memory`, the export and the statistics, all made from the database rows."""

from __future__ import annotations

import io
import os
import shutil
import zipfile
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from chatapp.accounts.models import User
from chatapp.forgetting.services import forget_entry
from chatapp.long_term import files as memory_files
from chatapp.long_term.actions.entries import add_entry, edit_entry
from chatapp.long_term.actions.profile import write_profile
from chatapp.long_term.models import MemoryEntry, Profile
from chatapp.operations.database.ids import new_id
from chatapp.operations.database.schema_version import database_made_at
from chatapp.providers.models import Usage
from chatapp.recall.actions import indexing
from chatapp.recall.actions.indexing import rebuild_index
from chatapp.recall.analysis import pack_terms
from chatapp.recall.models import SearchDocument, SearchOwner
from chatapp.recall.user_search import search_memory
from memory.tokens import estimate_text
from tests.memory_store.rows import NOW

Clients = Callable[..., Client]


@pytest.fixture
def remembered(alice: User, charlie: User) -> MemoryEntry:
    entry = add_entry(user=alice, text="She had a dog.", now=NOW)
    edit_entry(user=alice, entry_id=str(entry.pk), text="She has a heliotrope cat.")
    write_profile(user_id=alice.pk, text="- Plays the cello.", now=NOW)
    add_entry(user=charlie, text="Charlie's heliotrope.", now=NOW)
    return entry


def rebuild(*arguments: str) -> str:
    out = io.StringIO()
    call_command("rebuild_memory", *arguments, stdout=out)
    return out.getvalue()


@pytest.mark.mechanism("memory.rebuild")
def test_files_and_index_are_rebuilt_with_the_edits_of_users(alice: User, remembered: MemoryEntry):
    shutil.rmtree(memory_files.user_folder(alice.pk), ignore_errors=True)
    stray = memory_files.day_path(alice.pk, datetime(2020, 1, 1, tzinfo=UTC).date())
    stray.parent.mkdir(parents=True)
    stray.write_text("# 2020-01-01\n")
    SearchOwner.objects.all().delete()
    assert rebuild("alice@example.com") == "alice@example.com: 2 files, 1 document in the index.\n"
    assert "heliotrope cat" in memory_files.day_path(alice.pk, NOW.date()).read_text()
    assert memory_files.profile_path(alice.pk).read_text() == "- Plays the cello.\n"
    assert not stray.exists()
    [found] = search_memory(user_id=alice.pk, query="heliotrope", limit=5, now=NOW, zone=UTC)
    assert found.text == "She has a heliotrope cat."
    assert not search_memory(user_id=alice.pk, query="dog", limit=5, now=NOW, zone=UTC)


def test_rebuilding_restores_files_that_were_edited_or_deleted_on_disk(alice: User, api_client: Clients):
    client = api_client(alice)

    def send(method: str, path: str, **body: object) -> dict[str, Any]:
        answer = getattr(client, method)(f"/api/v1/memory/{path}", body, content_type="application/json")
        assert answer.status_code < 300, answer.content
        return dict(answer.json())

    ids = [
        send("post", "entries", text=f"Said on {day}.", day=day)["id"] for day in ("2026-11-20", "2026-11-21")
    ]
    send("patch", f"entries/{ids[0]}", text="Edited by its id.")
    day = client.get("/api/v1/memory/days/2026-11-21").json()["markdown"]
    send("put", "days/2026-11-21", markdown=day.replace("Said on 2026-11-21.", "Edited as a day."))
    send("put", "profile", markdown="- Edited.")
    folder = memory_files.user_folder(alice.pk)
    before = {path.name: path.read_bytes() for path in folder.glob("*.md")}
    assert set(before) == {"2026-11-20.md", "2026-11-21.md", "MEMORY.md"}

    (folder / "2026-11-20.md").unlink()
    (folder / "2026-11-21.md").write_text("# 2026-11-21\n\n## 10:00\n\nWritten into the file.\n")
    (folder / "MEMORY.md").write_text("- Written into the file.\n")
    (folder / "2020-02-02.md").write_text("# 2020-02-02\n")
    rebuild("alice@example.com")
    assert {path.name: path.read_bytes() for path in folder.glob("*.md")} == before
    assert b"Edited by its id." in before["2026-11-20.md"]
    assert b"Edited as a day." in before["2026-11-21.md"]
    assert [len(list(row.revisions.all())) for row in MemoryEntry.objects.order_by("day")] == [1, 1]


def test_rebuilding_twice_changes_nothing(alice: User, remembered: MemoryEntry):
    before = rebuild()
    assert before == rebuild()
    assert "charlie@example.com" in before
    assert MemoryEntry.objects.count() == 2


@pytest.mark.parametrize("is_deleted", [False, True], ids=["edited", "deleted"])
def test_an_entry_changed_during_a_rebuild_is_indexed_as_it_is_now(
    alice: User, remembered: MemoryEntry, is_deleted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "FEW_ENTRIES", 1)  # the later entry is in the next transaction
    later = add_entry(user=alice, text="The ferry leaves at noon.", now=NOW + timedelta(minutes=1))
    changed = []

    def change(run: Callable[..., Any], sql: str, *more: Any) -> Any:
        """Change the later entry when the earlier one is about to be indexed."""
        if "chatapp_searchowner AS owner" in sql and not changed:
            changed.append(later)
            if is_deleted:
                forget_entry(alice, later.pk, now=NOW)
            else:
                edit_entry(user=alice, entry_id=str(later.pk), text="The tram leaves at dawn.")
        return run(sql, *more)

    with connection.execute_wrapper(change):
        rebuild_index(alice.pk)
    assert changed
    found = search_memory(user_id=alice.pk, query="the tram at dawn", limit=5, now=NOW, zone=UTC)
    assert ("The tram leaves at dawn." in [item.text for item in found]) is not is_deleted
    indexed = SearchDocument.objects.filter(source_id=later.pk)
    assert len(indexed) == (0 if is_deleted else 1)
    for row in indexed:
        assert bytes(row.terms) == pack_terms("The tram leaves at dawn.").terms


def test_an_unknown_user_is_reported(db: None):
    with pytest.raises(CommandError, match="no user nobody@"):
        rebuild("nobody@example.com")


def test_the_clean_up_removes_files_and_folders_without_a_row(
    alice: User, charlie: User, remembered: MemoryEntry
):
    rebuild()
    memory_files.sweep_orphans()  # remove those of other tests
    charlies = memory_files.user_folder(charlie.pk)
    assert charlies.is_dir()
    charlie.delete()
    Profile.objects.filter(pk=alice.pk).delete()
    of_another_database = charlies.with_name(str(new_id()))
    of_another_database.mkdir()
    (of_another_database / "MEMORY.md").write_text("- Of a user of that one.")
    os.utime(of_another_database, (0, database_made_at().timestamp() - 1))
    assert memory_files.sweep_orphans() == 2
    assert (of_another_database / "MEMORY.md").exists()
    shutil.rmtree(of_another_database)
    assert not charlies.exists()
    assert not memory_files.profile_path(alice.pk).exists()
    assert memory_files.day_path(alice.pk, NOW.date()).exists()
    assert memory_files.sweep_orphans() == 0


def test_the_clean_up_skips_a_folder_that_an_account_deletion_removes_meanwhile(
    charlie: User, remembered: MemoryEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    rebuild()
    memory_files.sweep_orphans()  # remove those of other tests
    folder, users_gone = memory_files.user_folder(charlie.pk), memory_files.users_gone

    def deleted_meanwhile(user_ids: Collection[UUID]) -> set[UUID]:
        charlie.delete()
        shutil.rmtree(folder)
        return users_gone(user_ids)

    monkeypatch.setattr(memory_files, "users_gone", deleted_meanwhile)
    assert memory_files.sweep_orphans() == 0


def test_foreign_files_in_the_folders_stay_and_cause_no_error(alice: User, remembered: MemoryEntry):
    rebuild()
    beside = memory_files.user_folder(alice.pk).parent / ".DS_Store"
    inside = memory_files.user_folder(alice.pk) / "2026-99-99.md"
    for stray in (beside, inside):
        stray.write_text("of a file manager")
    memory_files.sweep_orphans()
    assert rebuild("alice@example.com").startswith("alice@example.com: 2 files")
    assert beside.exists()
    assert inside.exists()
    beside.unlink()


@pytest.mark.mechanism("memory.rebuild")
def test_the_export_contains_only_the_users_own_markdown(
    alice: User, remembered: MemoryEntry, api_client: Clients
):
    answer = api_client(alice).get("/api/v1/memory/export")
    assert answer["Content-Type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.getvalue())) as archive:
        assert sorted(archive.namelist()) == ["2026-11-21.md", "MEMORY.md"]
        said = archive.read("2026-11-21.md").decode()
    assert "heliotrope cat" in said
    assert "Charlie" not in said


def test_the_export_of_an_empty_memory_is_an_empty_zip(bob: User, api_client: Clients):
    answer = api_client(bob).get("/api/v1/memory/export")
    with zipfile.ZipFile(io.BytesIO(answer.getvalue())) as archive:
        assert archive.namelist() == []


def use(user: User, at: datetime, input_tokens: int) -> None:
    row = Usage.objects.create(
        user=user, model_name="m", purpose="chat", input_tokens=input_tokens, output_tokens=7, exact=True
    )
    Usage.objects.filter(pk=row.pk).update(created_at=at)


def test_statistics_are_grouped_by_day_in_the_users_time_zone(
    alice: User, charlie: User, remembered: MemoryEntry, api_client: Clients
):
    User.objects.filter(pk=alice.pk).update(time_zone="Asia/Tokyo")
    use(alice, datetime(2026, 11, 20, 14, 59, tzinfo=UTC), 100)
    use(alice, datetime(2026, 11, 20, 15, 1, tzinfo=UTC), 200)
    use(alice, datetime(2026, 11, 20, 16, 1, tzinfo=UTC), 300)
    use(charlie, datetime(2026, 11, 20, 16, 1, tzinfo=UTC), 5_000)
    told = api_client(alice).get("/api/v1/memory/stats?from=2026-11-19&to=2026-11-21").json()
    assert told["items"] == [
        {"day": "2026-11-20", "entry_count": 0, "entry_tokens": 0, "input_tokens": 100, "output_tokens": 7},
        {
            "day": "2026-11-21",
            "entry_count": 1,
            "entry_tokens": estimate_text("She has a heliotrope cat."),
            "input_tokens": 500,
            "output_tokens": 14,
        },
    ]
    assert told["from"] == "2026-11-19"


@pytest.mark.parametrize(
    "period", ["from=2026-11-22&to=2026-11-21", "from=2020-01-01&to=2026-11-21", "to=soon"]
)
def test_an_invalid_period_returns_422(alice: User, api_client: Clients, period: str):
    assert api_client(alice).get(f"/api/v1/memory/stats?{period}").status_code == 422
