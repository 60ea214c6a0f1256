"""Forgetting, leases and crashes between the turns of an import and during one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.db.models import F
from django.db.models.signals import post_save
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation, Message
from chatapp.features.importing import job, stream
from chatapp.features.importing.importer import Report, import_file
from chatapp.features.importing.job_actions import MAX_TURNS_WITHOUT_PROGRESS, claim_import
from chatapp.features.importing.models import Import
from chatapp.features.importing.selectors import forgotten_sources
from chatapp.forgetting.models import Removal
from chatapp.forgetting.services import forget_all, forget_whole_conversation
from chatapp.operations import clock
from tests.importing.exports import chatgpt, gpt_node
from tests.importing.test_imports_api import upload, work

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(job, "folder", lambda: tmp_path / "imports")


@pytest.fixture
def alice_client(api_client: Callable[..., Client], alice: User) -> Client:
    return api_client(alice)


def begun(client: Client, monkeypatch: pytest.MonkeyPatch) -> str:
    """Begin an import of three conversations and return its id. One turn has stored the first."""
    monkeypatch.setattr("chatapp.features.importing.importer.CHATS_AT_ONCE", 1)
    chats = [chatgpt(conversation_id=f"c{number}", title=f"Chat {number}") for number in range(3)]
    made: Any = upload(client, *chats).json()["id"]
    work(made, turn_s=0.0)
    assert Import.objects.get(pk=made).state == "running"
    assert Conversation.objects.get().title == "Chat 0"
    return str(made)


def test_everything_that_is_forgotten_during_an_import_stays_forgotten(
    alice: User, alice_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = begun(alice_client, monkeypatch)
    forget_all(alice, now=clock.now(), for_good=True)
    assert not Conversation.objects.exists()
    job.import_some(UUID(made), 1e9)
    assert not Conversation.objects.exists(), "the next turn brought back what was forgotten"
    assert list(job.folder().iterdir()) == []


def test_an_import_stores_nothing_while_everything_is_being_forgotten(
    alice: User, alice_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = begun(alice_client, monkeypatch)

    def go_on(**_: Any) -> None:
        """Continue the import, as a worker would, as soon as the first removal is committed."""
        post_save.disconnect(go_on, sender=Removal)
        transaction.on_commit(lambda: job.import_some(UUID(made), 1e9))

    post_save.connect(go_on, sender=Removal)
    forget_all(alice, now=clock.now(), for_good=True)
    assert not post_save.disconnect(go_on, sender=Removal), "it was called"
    assert not Conversation.objects.exists()
    assert list(job.folder().iterdir()) == []


def test_chats_already_read_are_not_stored_once_everything_is_forgotten(
    alice: User, alice_client: Client
) -> None:
    made = upload(alice_client, chatgpt(conversation_id="c0", title="Chat 0")).json()["id"]
    row = Import.objects.get(pk=made)
    asked: list[str] = []

    def forgotten() -> frozenset[str] | None:
        """Forget everything just after the last check before the chat is stored."""
        known = forgotten_sources(row)
        asked.append(made)
        if len(asked) == 2:
            (path := job.folder() / made).rename(kept := path.with_name("kept"))
            forget_all(alice, now=clock.now(), for_good=True)
            kept.rename(path)
        return known

    import_file(user=alice, path=job.folder() / made, report=Report(), forgotten=forgotten)
    assert len(asked) > 2
    assert not Conversation.objects.exists()


@pytest.mark.parametrize("dies", [False, True], ids=["in its turn", "after the turn died"])
def test_a_chat_that_is_forgotten_during_an_import_stays_forgotten(
    alice: User, alice_client: Client, monkeypatch: pytest.MonkeyPatch, dies: bool
) -> None:
    made = begun(alice_client, monkeypatch)
    if dies:  # the report of the turn was not stored
        Import.objects.filter(pk=made).update(report={})
    forget_whole_conversation(alice, Conversation.objects.get().pk, now=clock.now())
    assert not Conversation.with_unowned.exists()
    job.import_some(UUID(made), 0.0)
    job.import_some(UUID(made), 1e9)
    assert sorted(Conversation.objects.values_list("title", flat=True)) == ["Chat 1", "Chat 2"]
    done = alice_client.get(f"/api/v1/imports/{made}").json()
    assert (done["state"], done["conversations"]) == ("done", 2 if dies else 3)
    chat = chatgpt(conversation_id="c0", title="Chat 0")
    work(upload(alice_client, chat).json()["id"])
    assert Conversation.objects.filter(title="Chat 0").exists(), "another import brings it along"


def test_a_chat_forgotten_before_an_import_reaches_it_stays_forgotten(
    alice: User, alice_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier import had stored the chat, so this one would have skipped it."""
    work(upload(alice_client, chatgpt(conversation_id="c2", title="Chat 2")).json()["id"])
    former = Conversation.objects.get()
    Conversation.objects.filter(pk=former.pk).update(title="Former")
    made = upload(alice_client, *(chatgpt(conversation_id=f"c{number}") for number in range(3))).json()["id"]
    forget_whole_conversation(alice, former.pk, now=clock.now())
    work(made)
    assert Conversation.objects.count() == 2


def long_import(client: Client, monkeypatch: pytest.MonkeyPatch) -> str:
    """Begin an import of one conversation, which is read in many parts, each noted in the row. Return its id."""
    monkeypatch.setattr(stream, "READ_AT_ONCE", 1_000)
    monkeypatch.setattr(stream, "MAX_COST", 1_000_000)
    monkeypatch.setattr(job, "NOTED_EVERY_S", 0)
    content = b'{"values": [0' + b",0" * 50_000 + b"]}"
    return str(upload(client, content=content).json()["id"])


def test_the_lease_is_renewed_while_one_long_conversation_is_read(
    alice_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = long_import(alice_client, monkeypatch)
    with CaptureQueriesContext(connection) as told:
        work(made)
    renewed = [each for each in told if f'UPDATE "{Import._meta.db_table}"' in each["sql"]]
    assert len(renewed) > 50
    assert Import.objects.get(pk=made).state == "done"


def test_a_worker_that_lost_its_lease_stops_within_a_conversation(
    alice_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = long_import(alice_client, monkeypatch)
    looked = 0

    def take_over(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        """Let another worker claim the import when this one reads the row for the tenth time."""
        nonlocal looked
        if sql.startswith("SELECT") and f'FROM "{Import._meta.db_table}"' in sql:
            looked += 1
            if looked == 10:
                Import.objects.filter(pk=made).update(fence=F("fence") + 1)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(take_over):
        work(made)
    assert looked == 10, "it read on"
    assert Import.objects.get(pk=made).state == "running"


def test_the_lease_is_renewed_while_one_long_conversation_is_stored(
    alice_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "NOTED_EVERY_S", 0)
    nodes = [
        gpt_node(f"m{at}", f"m{at - 1}" if at else None, "user", f"Line {at}.", 1_700_000_000.0)
        for at in range(1_200)
    ]
    chat = chatgpt(mapping={node["id"]: node for node in nodes}, current_node="m1199")
    made = upload(alice_client, chat).json()["id"]
    with CaptureQueriesContext(connection) as told:
        work(made)
    tables = f'INSERT INTO "{Message._meta.db_table}"', f'UPDATE "{Import._meta.db_table}"'
    kinds = [table for each in told for table in tables if table in each["sql"]]
    first, last = kinds.index(tables[0]), len(kinds) - 1 - kinds[::-1].index(tables[0])
    assert tables[1] in kinds[first:last]
    assert Conversation.objects.get().messages.count() == 1_200


def test_an_import_fails_after_too_many_crashed_turns_and_can_be_retried(
    alice_client: Client,
) -> None:
    made = upload(alice_client, chatgpt()).json()["id"]
    for _ in range(2):
        for _ in range(MAX_TURNS_WITHOUT_PROGRESS):  # each worker dies in its turn
            assert claim_import(import_id=UUID(made), now=clock.now()) is not None
            Import.objects.filter(pk=made).update(lease_expires_at=clock.now())
        work(made)
        failed = alice_client.get(f"/api/v1/imports/{made}").json()
        assert (failed["state"], failed["error"]) == ("failed", job.BROKEN)
        assert alice_client.post(f"/api/v1/imports/{made}/retry").status_code == 202
    work(made)
    assert alice_client.get(f"/api/v1/imports/{made}").json()["state"] == "done"


def test_turns_that_make_progress_are_not_limited(
    alice_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chatapp.features.importing.importer.CHATS_AT_ONCE", 1)
    chats = [chatgpt(conversation_id=f"c{number}") for number in range(MAX_TURNS_WITHOUT_PROGRESS + 3)]
    made = upload(alice_client, *chats).json()["id"]
    for _ in range(len(chats) + 1):
        work(made, turn_s=0.0)
    assert alice_client.get(f"/api/v1/imports/{made}").json()["state"] == "done"
    assert Conversation.objects.count() == len(chats)
