"""Forgetting everything ends the user's imports and deletes their files."""

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
from chatapp.features.importing.models import Import
from chatapp.forgetting.services import forget_all
from chatapp.operations import clock
from tests.importing.exports import chatgpt
from tests.importing.test_imports_api import upload, work

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(job, "folder", lambda: tmp_path / "imports")


def test_forgetting_everything_deletes_the_file_of_a_failed_import(
    alice: User, api_client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = api_client(alice)
    made = upload(client, chatgpt()).json()["id"]

    def breaks(**_: Any) -> bool:
        raise RuntimeError("of ours")

    with monkeypatch.context() as broken:
        broken.setattr(job, "import_file", breaks)
        work(made)
    assert Import.objects.get(pk=made).state == "failed"
    forget_all(alice, now=clock.now(), for_good=True)
    job.sweep(clock.now())
    again = client.post(f"/api/v1/imports/{made}/retry")
    if again.status_code == 202:
        work(made)
    assert not Conversation.objects.exists(), "one click brings it all back"
    assert list(job.folder().iterdir()) == [], "all that was said lies on the disk for two days"


def test_a_running_import_stores_nothing_once_everything_is_forgotten(
    alice: User, api_client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = upload(api_client(alice), chatgpt()).json()["id"]

    def forgets_meanwhile(*, tell: Any, **values: Any) -> bool:
        """Import the file, but forget everything as soon as a chat was read."""

        def told(report: Any, progress: Any) -> bool:
            forget_all(alice, now=clock.now(), for_good=True)
            monkeypatch.setattr(job, "NOTED_EVERY_S", 0)  # the next beat checks the row, which is gone
            return bool(tell(report, progress))

        return import_file(tell=told, **values)

    monkeypatch.setattr(job, "import_file", forgets_meanwhile)
    work(made)
    assert not Conversation.objects.filter(user=alice).exists(), (
        "it was stored after everything was forgotten"
    )
