"""What is left of a user who had everything forgotten."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def test_the_file_of_a_failed_import_is_gone(
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
