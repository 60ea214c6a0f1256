"""Leases and queued work of a dead process whose clock was ahead are taken over after the clock is set back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from chatapp.accounts.models import User
from chatapp.compaction.actions.compactions import claim_compaction
from chatapp.compaction.models import Compaction
from chatapp.compaction.selectors import waiting_compactions
from chatapp.features.importing.job_actions import claim_import
from chatapp.features.importing.models import Import
from chatapp.features.importing.selectors import waiting_imports
from chatapp.features.titles.actions import claim_title
from chatapp.features.titles.models import TitleJob
from chatapp.features.titles.selectors import waiting_titles
from chatapp.features.webhooks.actions import claim_delivery, create_webhook
from chatapp.features.webhooks.models import WebhookDelivery
from chatapp.features.webhooks.selectors import due_deliveries
from chatapp.forgetting.actions.removals import begin_import, claim_removal
from chatapp.forgetting.selectors.forgotten import waiting_removals
from chatapp.long_term.actions.consolidations import claim_consolidation, queue_consolidation
from chatapp.long_term.selectors.profile import waiting_consolidations
from chatapp.operations import clock
from chatapp.runs.actions.sending import NewMessage, send_message
from chatapp.runs.models import Run
from chatapp.runs.selectors import orphaned_runs
from tests.memory_store.rows import finished_compaction, new_conversation

pytestmark = pytest.mark.django_db
NOW = clock.now()
AHEAD = NOW + timedelta(hours=1)


def compaction(alice: User) -> Any:
    row = finished_compaction(new_conversation(alice))
    Compaction.objects.filter(pk=row.pk).update(status="pending")
    return row.pk


def consolidation(alice: User) -> Any:
    row = queue_consolidation(user_id=alice.pk, now=NOW)
    return row and row.pk


def removal(alice: User) -> Any:
    row = begin_import(new_conversation(alice))
    # Let the lease expire, so that a worker can take the removal over.
    type(row).objects.filter(pk=row.pk).update(lease_expires_at=NOW)
    return row.pk


def import_of_a_file(alice: User) -> Any:
    row = Import.objects.create(
        user=alice, file_name="a.json", size_bytes=2, lease_expires_at=NOW, created_at=NOW
    )
    return row.pk


def title(alice: User) -> Any:
    return TitleJob.objects.create(conversation=new_conversation(alice), lease_expires_at=NOW).pk


def delivery(alice: User) -> Any:
    webhook, _ = create_webhook(user=alice, url="http://127.0.0.1:9/", events=["run.failed"], now=NOW)
    row = WebhookDelivery.objects.create(
        webhook=webhook, conversation=new_conversation(alice), seq=1, next_attempt_at=NOW, created_at=NOW
    )
    return row.pk


Case = tuple[Callable[[User], Any], Callable[..., Any], Callable[..., Any]]
CASES: dict[str, Case] = {
    "compaction": (
        compaction,
        lambda pk, now: claim_compaction(compaction_id=pk, holder="a worker", now=now),
        waiting_compactions,
    ),
    "consolidation": (
        consolidation,
        lambda pk, now: claim_consolidation(consolidation_id=pk, now=now),
        waiting_consolidations,
    ),
    "removal": (removal, lambda pk, now: claim_removal(removal_id=pk, now=now), waiting_removals),
    "import": (import_of_a_file, lambda pk, now: claim_import(import_id=pk, now=now), waiting_imports),
    "title": (title, lambda pk, now: claim_title(conversation_id=pk, now=now), waiting_titles),
    "delivery": (delivery, lambda pk, now: claim_delivery(delivery_id=pk, now=now), due_deliveries),
}


@pytest.mark.parametrize("kind", CASES)
def test_work_of_a_dead_process_is_taken_over_after_the_clock_is_set_back(alice: User, kind: str) -> None:
    make, claim, waiting = CASES[kind]
    pk = make(alice)
    assert claim(pk, AHEAD)
    assert waiting(NOW) == [pk]
    assert claim(pk, NOW)
    # A live lease is left alone, even by a machine whose clock is slightly behind.
    for moment in (NOW, NOW - timedelta(seconds=10)):
        assert waiting(moment) == []
        assert not claim(pk, moment)


def queued_run(alice: User) -> Any:
    conversation = str(new_conversation(alice).pk)
    send_message(user=alice, conversation_id=conversation, new=NewMessage("Hello?"), model=None, now=AHEAD)
    return Run.objects.get().pk


def queued_compaction(alice: User) -> Any:
    pk = compaction(alice)
    Compaction.objects.update(created_at=AHEAD)
    return pk


def queued_consolidation(alice: User) -> Any:
    row = queue_consolidation(user_id=alice.pk, now=AHEAD)
    return row and row.pk


def queued_delivery(alice: User) -> Any:
    pk = delivery(alice)
    WebhookDelivery.objects.update(next_attempt_at=AHEAD + timedelta(seconds=1), created_at=AHEAD)
    return pk


@pytest.mark.parametrize(
    ("queue", "waiting"),
    [
        (queued_run, orphaned_runs),
        (queued_compaction, waiting_compactions),
        (queued_consolidation, waiting_consolidations),
        (queued_delivery, due_deliveries),
    ],
)
def test_work_queued_before_the_clock_is_set_back_is_found(
    alice: User, queue: Callable[[User], Any], waiting: Callable[..., Any]
) -> None:
    assert [queue(alice)] == waiting(NOW)
