"""What happens between two turns of an import, and in the middle of one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation
from chatapp.features.importing import job
from chatapp.features.importing.models import Import
from chatapp.forgetting.services import forget_all
from chatapp.operations import clock
from tests.importing.exports import chatgpt
from tests.importing.test_imports_api import upload, work

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(job, "folder", lambda: tmp_path / "imports")


@pytest.fixture
def alice_client(api_client: Callable[..., Client], alice: User) -> Client:
    return api_client(alice)


def begun(client: Client, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return an import one turn of which has brought one of three conversations along."""
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
