"""Who has everything forgotten imports nothing any more: what goes on ends (chatapp/features/importing/receivers.py)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation
from chatapp.features.importing import job
from chatapp.features.importing.importer import import_file
from chatapp.forgetting.services import forget_all
from chatapp.operations import clock
from tests.importing.exports import chatgpt
from tests.importing.test_imports_api import upload, work

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(job, "folder", lambda: tmp_path / "imports")


def test_an_import_that_a_worker_is_at_brings_nothing_back(
    alice: User, api_client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = upload(api_client(alice), chatgpt()).json()["id"]

    def forgets_meanwhile(*, tell: Any, **values: Any) -> bool:
        """Import as the worker does, whose user has everything forgotten once the chat is read."""

        def told(report: Any, progress: Any) -> bool:
            forget_all(alice, now=clock.now(), for_good=True)
            monkeypatch.setattr(job, "NOTED_EVERY_S", 0)  # the row is looked at, and is gone
            return bool(tell(report, progress))

        return import_file(tell=told, **values)

    monkeypatch.setattr(job, "import_file", forgets_meanwhile)
    work(made)
    assert not Conversation.objects.filter(user=alice).exists(), (
        "it was stored after everything was forgotten"
    )
