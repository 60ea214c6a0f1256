"""The nightly consolidation: which users are due, what it writes, and that a crash still leaves one version."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from chatapp.accounts.models import User
from chatapp.forgetting.services import forget_entry
from chatapp.long_term import consolidation as consolidating
from chatapp.long_term import files as memory_files
from chatapp.long_term.actions.consolidations import (
    claim_consolidation,
    queue_consolidation,
    release_all_consolidations,
)
from chatapp.long_term.actions.entries import add_entry, edit_entry
from chatapp.long_term.actions.profile import write_profile
from chatapp.long_term.models import Consolidation, MemoryEntry, Profile, ProfileVersion
from chatapp.long_term.selectors.profile import users_due, waiting_consolidations
from chatapp.operations import clock
from chatapp.operations.errors import UNEXPECTED
from chatapp.providers.models import ModelConfig, Usage
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer

Clients = Callable[..., Client]
PROFILE = "/api/v1/memory/profile"
TODAY = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        server.defaults["chat"] = says("- Plays the cello.")
        yield server


@pytest.fixture
def model(server: ModelServer, db: None) -> ModelConfig:
    fast = ModelConfig.objects.create(name="Fast", model_id="fast", base_url=server.base_url)
    return ModelConfig.objects.create(
        name="Main", model_id="main", base_url=server.base_url, is_default=True, fast_model=fast
    )


def note(user: User, text: str = "She plays the cello.", **fields: Any) -> MemoryEntry:
    return add_entry(user=user, text=text, now=fields.pop("now", TODAY), **fields)


def work(user: User) -> Consolidation:
    """Queue a consolidation and carry it out as a worker."""
    row = queue_consolidation(user_id=user.pk, now=clock.now())
    assert row is not None
    consolidating.consolidate(row.pk)
    row.refresh_from_db()
    return row


def profile_of(user: User) -> str:
    return Profile.objects.filter(pk=user.pk).values_list("text", flat=True).first() or ""


def test_entries_become_the_profile_its_file_and_a_row_in_the_ledger(
    alice: User, model: ModelConfig, server: ModelServer
):
    entry = note(alice)
    row = work(alice)
    assert (row.status, row.version, row.entry_count) == ("done", 1, 1)
    assert profile_of(alice) == "- Plays the cello."
    assert memory_files.profile_path(alice.pk).read_text() == "- Plays the cello.\n"
    version = ProfileVersion.objects.get()
    assert version.author == "consolidation"
    [request] = server.requests
    assert request.body["model"] == "fast"
    assert "She plays the cello." in request.messages[1]["content"]
    usage = Usage.objects.get()
    assert (usage.purpose, usage.user, usage.conversation) == ("memory", alice, None)
    entry.refresh_from_db()
    assert entry.consolidated_at is not None


def test_the_ledger_has_the_savings_of_cached_tokens(
    alice: User, model: ModelConfig, server: ModelServer
) -> None:
    ModelConfig.objects.filter(name="Fast").update(
        input_price=2, output_price=8, cached_price=Decimal("0.50")
    )
    server.script(says("- Plays the cello.", prompt_tokens=1_000, cached_tokens=800))
    note(alice)
    work(alice)
    usage = Usage.objects.get()
    assert (usage.cache_saved, usage.compaction_saved) == (800 * Decimal("1.50") / 1_000_000, 0)


def test_each_entry_is_read_once_and_again_after_a_change(
    alice: User, model: ModelConfig, server: ModelServer
):
    entry = note(alice)
    work(alice)
    work(alice)
    assert len(server.requests) == 1, "nothing new, nothing asked"
    edit_entry(user=alice, entry_id=str(entry.pk), text="She plays the violin.")
    server.script(says("- Plays the violin."))
    work(alice)
    assert profile_of(alice) == "- Plays the violin."


@pytest.mark.mechanism("memory.profile-owner")
def test_lines_that_the_user_wrote_stay_and_lines_that_the_user_removed_stay_out(
    alice: User, model: ModelConfig, server: ModelServer
):
    server.script(says("- Plays the cello.\n- Grows heliotrope in Lisbon."))
    note(alice)
    work(alice)
    write_profile(user_id=alice.pk, text="- Plays the cello badly.", now=TODAY)
    note(alice, "Heliotrope again.")
    server.script(says("- In Lisbon she grows heliotrope.\n- Has a dog."))
    work(alice)
    assert profile_of(alice) == "- Has a dog.\n- Plays the cello badly."


@pytest.mark.sqlite
@pytest.mark.mechanism("memory.no-model")
def test_without_a_language_model_the_consolidation_is_skipped_with_a_reason(
    alice: User, db: None, api_client: Clients
):
    ModelConfig.objects.create(name="Demo", kind=ModelConfig.Kind.DEMO, is_default=True)
    note(alice)
    assert work(alice).status == "skipped"
    assert profile_of(alice) == ""
    told = api_client(alice).get(PROFILE).json()["consolidation"]
    assert told["status"] == "skipped"
    assert "Demo model" in told["reason"]
    assert MemoryEntry.objects.get().consolidated_at is None, "it is read when there is a model"


@pytest.mark.sqlite
@pytest.mark.parametrize("answer", [says(""), says("```\n```"), says("x", status=401, error="no")])
def test_an_unusable_answer_leaves_the_profile_as_it_is(
    alice: User, model: ModelConfig, server: ModelServer, answer: Any
):
    write_profile(user_id=alice.pk, text="- Mine.", now=TODAY)
    note(alice)
    server.script(answer)
    row = work(alice)
    assert row.status == "failed"
    assert row.error
    assert profile_of(alice) == "- Mine."
    assert MemoryEntry.objects.get().consolidated_at is None


@pytest.mark.mechanism("memory.consolidation")
def test_a_user_is_due_once_a_night_by_their_own_time_zone(alice: User, bob: User, charlie: User):
    User.objects.filter(pk=bob.pk).update(time_zone="Asia/Tokyo")
    bob.refresh_from_db()
    note(alice)
    note(bob)
    assert users_due(TODAY) == []
    late = TODAY.replace(hour=22)
    assert [user for user, _ in users_due(late)] == [], "Tokyo wrote it on the 22nd"
    tokyo_midnight = datetime(2026, 11, 22, 15, 1, tzinfo=UTC)
    assert {user for user, _ in users_due(tokyo_midnight)} == {alice.pk, bob.pk}
    [(user_id, night)] = users_due(TODAY + timedelta(hours=4, minutes=5))
    assert (user_id, night.isoformat()) == (alice.pk, "2026-11-22")
    row = queue_consolidation(user_id=user_id, night=night, now=TODAY)
    assert row is not None
    assert users_due(TODAY + timedelta(hours=5)) == []
    Consolidation.objects.update(status="failed")
    assert users_due(TODAY + timedelta(hours=5)) == [], "one attempt a night"
    assert queue_consolidation(user_id=user_id, night=night, now=TODAY) is None
    next_night = TODAY + timedelta(days=1, hours=4, minutes=5)
    assert {user for user, _ in users_due(next_night)} == {alice.pk, bob.pk}


@pytest.mark.parametrize("why", ["paused", "switched off", "proposed", "deactivated"])
def test_users_who_are_paused_inactive_or_without_approved_entries_are_skipped(
    alice: User, model: ModelConfig, server: ModelServer, why: str
):
    note(alice)
    if why == "proposed":
        MemoryEntry.objects.update(state=MemoryEntry.State.PROPOSED)
    else:
        fields = {"paused": ("memory_paused", True), "switched off": ("uses_profile", False)}
        name, value = fields.get(why, ("is_active", False))
        User.objects.filter(pk=alice.pk).update(**{name: value})
    assert users_due(TODAY + timedelta(days=2)) == []
    work(alice)
    assert server.requests == []
    assert profile_of(alice) == ""


def test_a_nightly_pass_reads_only_days_that_are_over(alice: User, model: ModelConfig, server: ModelServer):
    note(alice, "Yesterday.", now=TODAY)
    note(alice, "Today.", now=TODAY + timedelta(days=1))
    row = queue_consolidation(user_id=alice.pk, night=(TODAY + timedelta(days=1)).date(), now=TODAY)
    assert row is not None
    consolidating.consolidate(row.pk)
    [request] = server.requests
    assert "Yesterday." in request.messages[1]["content"]
    assert "Today." not in request.messages[1]["content"]


@pytest.mark.mechanism("memory.consolidation")
def test_a_long_backlog_is_processed_in_several_bounded_passes(
    alice: User, model: ModelConfig, server: ModelServer
):
    for number in range(6):
        note(alice, f"Note {number}. " + "word " * 1_100, now=TODAY + timedelta(seconds=number))
    ModelConfig.objects.update(context_size=14_000, max_output_tokens=2_000)
    queue_consolidation(user_id=alice.pk, now=clock.now())
    passes = 0
    while (row := Consolidation.objects.filter(status="pending").first()) is not None:
        consolidating.consolidate(row.pk)
        passes += 1
    assert 1 < passes <= consolidating.PASSES_A_DAY
    assert not MemoryEntry.objects.filter(consolidated_at=None).exists()
    read = "".join(request.messages[1]["content"] for request in server.requests)
    assert [read.count(f"Note {number}.") for number in range(6)] == [1] * 6


def test_a_task_delivered_twice_writes_one_version(alice: User, model: ModelConfig, server: ModelServer):
    note(alice)
    row = work(alice)
    consolidating.consolidate(row.pk)
    assert len(server.requests) == 1
    assert ProfileVersion.objects.count() == 1


@pytest.mark.mechanism("memory.one-version")
def test_another_worker_takes_over_from_one_that_died(alice: User, model: ModelConfig):
    note(alice)
    row = queue_consolidation(user_id=alice.pk, now=clock.now())
    assert row is not None
    assert claim_consolidation(consolidation_id=row.pk, now=clock.now() - Consolidation.LEASE * 2) is not None
    assert waiting_consolidations(clock.now()) == [row.pk]
    consolidating.consolidate(row.pk)
    assert profile_of(alice) == "- Plays the cello."
    assert ProfileVersion.objects.count() == 1


def test_after_a_restart_of_the_only_process_a_consolidation_continues_at_once(
    alice: User, model: ModelConfig
):
    note(alice)
    row = queue_consolidation(user_id=alice.pk, now=clock.now())
    assert row is not None
    claim_consolidation(consolidation_id=row.pk, now=clock.now())
    consolidating.consolidate(row.pk)
    assert profile_of(alice) == "", "somebody seems to hold it"
    release_all_consolidations(now=clock.now() - timedelta(seconds=1))
    consolidating.consolidate(row.pk)
    assert profile_of(alice) == "- Plays the cello."


def test_after_three_dead_workers_a_consolidation_fails_without_a_model_call(
    alice: User, model: ModelConfig, server: ModelServer
):
    note(alice)
    row = queue_consolidation(user_id=alice.pk, now=clock.now())
    assert row is not None
    for _ in range(3):
        claim_consolidation(consolidation_id=row.pk, now=clock.now())
        release_all_consolidations(now=clock.now() - timedelta(seconds=1))
    consolidating.consolidate(row.pk)
    row.refresh_from_db()
    assert (row.status, row.error) == ("failed", consolidating.WORKERS_DIED)
    assert server.requests == []


@pytest.mark.sqlite
def test_an_unexpected_error_of_a_consolidation_is_reported_without_its_own_message(
    alice: User, model: ModelConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("password of db.internal")

    note(alice)
    row = queue_consolidation(user_id=alice.pk, now=clock.now())
    assert row is not None
    monkeypatch.setattr(consolidating, "_carry_out", fail)
    consolidating.consolidate(row.pk)
    row.refresh_from_db()
    assert (row.status, row.error) == ("failed", UNEXPECTED)


def test_forgetting_while_a_consolidation_waits_does_not_count_as_an_attempt(
    alice: User, model: ModelConfig, server: ModelServer
):
    note(alice)
    row = queue_consolidation(user_id=alice.pk, now=clock.now())
    assert row is not None
    for number in range(5):
        forget_entry(alice, note(alice, f"Note {number}.").pk, now=clock.now())
    assert claim_consolidation(consolidation_id=row.pk, now=clock.now()) is not None
    forget_entry(alice, note(alice, "Read by it.").pk, now=clock.now())
    consolidating.consolidate(row.pk)
    row.refresh_from_db()
    assert (row.status, row.error) == ("done", "")


@pytest.mark.django_db(transaction=True)
def test_forgetting_ends_a_running_consolidation_and_does_not_count_as_an_attempt(
    alice: User, model: ModelConfig, server: ModelServer
) -> None:
    note(alice)
    row = queue_consolidation(user_id=alice.pk, now=clock.now())
    assert row is not None
    for number in range(2):
        other = note(alice, f"Note {number}.")
        assert claim_consolidation(consolidation_id=row.pk, now=clock.now()) is not None
        forget_entry(alice, other.pk, now=clock.now())
    other = note(alice, "Read by it.")
    with consolidating_held(row, server):
        forget_entry(alice, other.pk, now=clock.now())
        # Another worker has claimed it when the first one returns.
        assert claim_consolidation(consolidation_id=row.pk, now=clock.now()) is not None
    assert profile_of(alice) == "", "its holder has read what is forgotten"
    # Two more workers die. The deaths before the forgetting do not count.
    for _ in range(2):
        release_all_consolidations(now=clock.now() - timedelta(seconds=1))
        assert claim_consolidation(consolidation_id=row.pk, now=clock.now()) is not None
    forget_entry(alice, note(alice, "The last.").pk, now=clock.now())
    consolidating.consolidate(row.pk)
    row.refresh_from_db()
    assert (row.status, row.error) == ("done", "")


def test_a_profile_file_that_could_not_be_written_is_written_by_the_sweep(alice: User, model: ModelConfig):
    note(alice)
    memory_files.user_folder(alice.pk).mkdir(parents=True, exist_ok=True)
    in_the_way = memory_files.user_folder(alice.pk) / ".MEMORY.md.new"
    in_the_way.mkdir()
    work(alice)
    assert not memory_files.profile_path(alice.pk).exists()
    in_the_way.rmdir()
    memory_files.sweep_unwritten()
    assert memory_files.profile_path(alice.pk).read_text() == "- Plays the cello.\n"


@pytest.mark.django_db(transaction=True)
def test_a_worker_with_an_old_fencing_number_changes_nothing(
    alice: User, model: ModelConfig, server: ModelServer
):
    note(alice)
    row = queue_consolidation(user_id=alice.pk, now=clock.now())
    assert row is not None
    with consolidating_held(row, server):
        Consolidation.objects.update(fence=99)
    assert profile_of(alice) == ""
    assert MemoryEntry.objects.get().consolidated_at is None


@pytest.mark.django_db(transaction=True)
def test_a_call_is_in_the_ledger_even_if_a_forgetting_ends_its_consolidation(
    alice: User, model: ModelConfig, server: ModelServer
) -> None:
    note(alice)
    other = note(alice, "Read by it.")
    row = queue_consolidation(user_id=alice.pk, now=clock.now())
    assert row is not None
    with consolidating_held(row, server):
        forget_entry(alice, other.pk, now=clock.now())
    row.refresh_from_db()
    assert row.status == "pending"
    assert [usage.purpose for usage in Usage.objects.all()] == ["memory"]


@pytest.mark.mechanism("memory.one-version")
@pytest.mark.django_db(transaction=True)
def test_a_profile_that_its_user_changes_meanwhile_is_not_overwritten(
    alice: User, model: ModelConfig, server: ModelServer
):
    note(alice)
    row = queue_consolidation(user_id=alice.pk, now=clock.now())
    assert row is not None
    with consolidating_held(row, server):
        write_profile(user_id=alice.pk, text="- By hand.", now=TODAY)
    row.refresh_from_db()
    assert (row.status, profile_of(alice)) == ("pending", "- By hand.")
    consolidating.consolidate(row.pk)
    assert profile_of(alice) == "- Plays the cello.\n- By hand."
    assert list(ProfileVersion.objects.order_by("number").values_list("author", flat=True)) == [
        "user",
        "consolidation",
    ]


@pytest.mark.mechanism("memory.one-version")
@pytest.mark.django_db(transaction=True)
def test_concurrent_workers_write_one_version(alice: User, model: ModelConfig, server: ModelServer):
    note(alice)
    row = queue_consolidation(user_id=alice.pk, now=clock.now())
    assert row is not None
    workers = [
        threading.Thread(target=_in_a_thread, args=(lambda: consolidating.consolidate(row.pk),))
        for _ in range(5)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert len(server.requests) == 1
    assert ProfileVersion.objects.count() == 1
    assert Usage.objects.count() == 1


@contextmanager
def consolidating_held(row: Consolidation, server: ModelServer) -> Iterator[None]:
    """Hold a consolidation in its model call inside the context."""
    server.script(says("- Plays the cello.", hold_after=0))
    worker = threading.Thread(target=_in_a_thread, args=(lambda: consolidating.consolidate(row.pk),))
    worker.start()
    server.wait_until(lambda server: len(server.requests) == 1)
    yield
    server.release()
    worker.join(120)


def _in_a_thread(act: Callable[[], None]) -> None:
    try:
        act()
    finally:
        connection.close()


def test_a_user_can_request_a_consolidation_of_their_own_profile_now(
    alice: User, charlie: User, model: ModelConfig, server: ModelServer, api_client: Clients
):
    note(alice)
    note(charlie, "Charlie's heliotrope.")
    answer = api_client(alice).post(f"{PROFILE}/consolidate")
    assert answer.status_code == 202
    assert answer.json()["consolidation"]["status"] == "pending"
    assert api_client(alice).post(f"{PROFILE}/consolidate").status_code == 202
    consolidating.consolidate(Consolidation.objects.get().pk)
    [request] = server.requests
    assert "heliotrope" not in str(request.messages)
    assert api_client(charlie).get(PROFILE).json()["markdown"] == ""


def test_all_due_users_are_queued_at_once(alice: User, bob: User, charlie: User):
    for user in (alice, bob, charlie):
        note(user, now=clock.now() - timedelta(days=2))
    assert consolidating.queue_due() == 3
    assert consolidating.queue_due() == 0
