"""Uploads of exports, which a worker imports in the background."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError
from django.test import Client

from agents.types import TokenUsage
from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation
from chatapp.features.importing import job
from chatapp.features.importing.models import Import
from chatapp.features.importing.selectors import waiting_imports
from chatapp.operations import clock
from chatapp.operations.database.ids import new_id
from chatapp.providers.model_facts import price_call
from chatapp.providers.models import ModelConfig
from tests.importing.exports import chatgpt, claude

pytestmark = pytest.mark.django_db(transaction=True)
Clients = Callable[..., Client]
IMPORTS = "/api/v1/imports"


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the uploads of each test apart."""
    monkeypatch.setattr(job, "folder", lambda: tmp_path / "imports")


@pytest.fixture
def alice_client(api_client: Clients, alice: User) -> Client:
    return api_client(alice)


def upload(client: Client, *items: Any, content: bytes | None = None) -> Any:
    body = json.dumps(items).encode() if content is None else content
    return client.post(IMPORTS, {"file": SimpleUploadedFile("conversations.json", body)})


def now_as(client: Client, import_id: str) -> dict[str, Any]:
    return dict(client.get(f"{IMPORTS}/{import_id}").json())


def work(import_id: str, turn_s: float = 1e9) -> None:
    """Run one turn of the import, as a worker does."""
    job.import_some(Import.objects.get(pk=import_id).pk, turn_s)


def test_an_upload_is_imported_after_the_response(alice_client: Client) -> None:
    answer = upload(alice_client, chatgpt(), {"a": 1}, claude())
    assert answer.status_code == 202, answer.content
    made = answer.json()
    assert (made["state"], made["progress"], made["file_name"]) == ("waiting", 0.0, "conversations.json")
    assert not Conversation.objects.exists()
    work(made["id"])
    done = now_as(alice_client, made["id"])
    assert (done["state"], done["progress"], done["source"], done["error"]) == ("done", 1.0, "chatgpt", "")
    assert (done["conversations"], done["messages"], done["known"]) == (2, 8, 0)
    assert done["problems"] == [{"index": 1, "reason": "It is not a conversation in a supported format."}]
    assert done["left_out"] == {
        "images and other files": 1, "steps of tools": 1, "steps of tools, and reasoning": 1,
    }  # fmt: skip
    assert list(job.folder().iterdir()) == [], "the file is not needed any more"
    assert alice_client.get(IMPORTS).json()["items"] == [done]


@pytest.mark.mechanism("ours.import")
def test_each_turn_continues_the_last_one_and_extends_its_report(
    alice_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chatapp.features.importing.importer.CHATS_AT_ONCE", 1)
    upload(alice_client, claude())
    work(str(Import.objects.get().pk))
    chats = [chatgpt(conversation_id=f"c{number}") for number in range(3)]
    made = upload(alice_client, "text", claude(), *chats).json()["id"]
    states = []
    for _ in range(4):
        work(made, turn_s=0.0)
        shown = now_as(alice_client, made)
        states.append((shown["state"], shown["conversations"]))
    assert states == [("running", 1), ("running", 2), ("running", 3), ("done", 3)]
    assert (shown["known"], shown["problem_count"], shown["messages"]) == (1, 1, 18)
    assert shown["left_out"] == {"steps of tools": 3}
    work(made)
    assert now_as(alice_client, made) == shown, "what is done is done"


def test_a_worker_leaves_an_import_to_another_until_the_lease_expires(alice_client: Client) -> None:
    made = upload(alice_client, chatgpt()).json()["id"]
    assert [str(pk) for pk in waiting_imports(clock.now() + timedelta(seconds=1))] == [made]
    Import.objects.update(state="running", lease_expires_at=clock.now() + timedelta(minutes=1))
    work(made)
    assert not Conversation.objects.exists()
    assert waiting_imports(clock.now()) == []
    Import.objects.update(lease_expires_at=clock.now() - timedelta(seconds=1))
    assert [str(pk) for pk in waiting_imports(clock.now())] == [made]
    work(made)
    assert now_as(alice_client, made)["state"] == "done"


def test_an_unavailable_database_does_not_end_an_import(
    alice_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = upload(alice_client, chatgpt()).json()["id"]

    def is_away(**_: Any) -> bool:
        raise OperationalError("the connection was lost")

    with monkeypatch.context() as patched:
        patched.setattr(job, "import_file", is_away)
        with pytest.raises(OperationalError):
            work(made)
    Import.objects.update(lease_expires_at=clock.now() - timedelta(seconds=1))
    assert [str(pk) for pk in waiting_imports(clock.now())] == [made]
    work(made)
    assert now_as(alice_client, made)["state"] == "done"


@pytest.mark.parametrize(
    ("content", "state", "told"),
    [
        (b"PK\x05\x06" + bytes(18), "failed", "The zip contains no conversations.json."),
        (b"hello", "done", "The rest of the file is not valid JSON"),
    ],
    ids=["zip", "text"],
)
def test_an_invalid_file_is_reported(alice_client: Client, content: bytes, state: str, told: str) -> None:
    made = upload(alice_client, content=content).json()["id"]
    work(made)
    done = now_as(alice_client, made)
    reasons = [done["error"], *(each["reason"] for each in done["problems"])]
    assert done["state"] == state
    assert any(told in reason for reason in reasons), reasons


def test_a_missing_file_fails_the_import_with_a_message(alice_client: Client) -> None:
    made = upload(alice_client, chatgpt()).json()["id"]
    (job.folder() / made).unlink()
    work(made)
    assert now_as(alice_client, made)["error"] == job.GONE


def begin(
    client: Client, size_bytes: int, name: str = "conversations.json", changed: str = "1", **sent: Any
) -> Any:
    body = {"file_name": name, "size_bytes": size_bytes, "fingerprint": changed}
    return client.post(f"{IMPORTS}/uploads", body, content_type="application/json", **sent)


def send_part(client: Client, import_id: str, offset: int, content: bytes) -> Any:
    address = f"{IMPORTS}/{import_id}/parts?offset={offset}"
    return client.post(address, content, content_type="application/octet-stream")


def test_an_upload_in_parts_resumes_where_it_was_interrupted(alice_client: Client) -> None:
    content = json.dumps([chatgpt(), claude()]).encode()
    made = begin(alice_client, len(content)).json()
    assert (made["state"], made["received_bytes"]) == ("uploading", 0)
    half = len(content) // 2
    assert send_part(alice_client, made["id"], 0, content[:half]).json()["received_bytes"] == half
    # The bytes of an interrupted part are overwritten.
    with (job.folder() / made["id"]).open("ab") as file:
        file.write(b"rubbish")
    again = begin(alice_client, len(content)).json()
    assert (again["id"], again["received_bytes"]) == (made["id"], half)
    assert send_part(alice_client, made["id"], 0, content[:half]).status_code == 409, "it is here already"
    assert send_part(alice_client, made["id"], half + 1, content[half + 1 :]).status_code == 409, "a hole"
    assert now_as(alice_client, made["id"])["state"] == "uploading"
    whole = send_part(alice_client, made["id"], half, content[half:]).json()
    assert (whole["state"], whole["received_bytes"]) == ("waiting", len(content))
    work(made["id"])
    assert (now_as(alice_client, made["id"])["state"], Conversation.objects.count()) == ("done", 2)
    assert send_part(alice_client, made["id"], half, content[half:]).status_code == 409
    assert begin(alice_client, len(content)).json()["received_bytes"] == 0, "what is done is not gone on with"


def test_another_file_of_the_same_name_is_another_upload(alice_client: Client) -> None:
    first = begin(alice_client, 10).json()["id"]
    assert begin(alice_client, 11).json()["id"] != first
    assert begin(alice_client, 10, changed="2").json()["id"] != first
    assert begin(alice_client, 10).json()["id"] == first
    refused = begin(alice_client, 12)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "too_many")
    assert alice_client.delete(f"{IMPORTS}/{first}").status_code == 204
    assert begin(alice_client, 12).status_code == 200
    assert upload(alice_client, chatgpt()).status_code == 202, "a whole file is not held up by parts"


def test_the_sizes_of_parts_and_of_uploads_are_limited(alice_client: Client, settings: Any) -> None:
    settings.MAX_REQUEST_BYTES = 976
    made = begin(alice_client, 5_000).json()
    assert made["part_bytes"] == 976
    for content in (b"", bytes(977)):
        assert send_part(alice_client, made["id"], 0, content).status_code == 422
    for offset in range(0, 4_880, 976):
        assert send_part(alice_client, made["id"], offset, bytes(976)).status_code == 200
    assert send_part(alice_client, made["id"], 4_880, bytes(121)).status_code == 422, (
        "more than was announced"
    )
    settings.MAX_STORED_BYTES = 9_000
    refused = begin(alice_client, 4_001)
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "storage_full")
    assert Import.objects.count() == 1, "what is refused leaves nothing"
    assert begin(alice_client, 4_000).status_code == 200
    settings.MAX_STORED_BYTES = 0
    too_large = begin(alice_client, 2**50)
    assert (too_large.status_code, too_large.json()["error"]["code"]) == (507, "storage_full")


def test_an_upload_in_one_request_counts_towards_the_storage_limit(
    alice_client: Client, settings: Any
) -> None:
    assert begin(alice_client, 5_000).status_code == 200
    settings.MAX_STORED_BYTES = 9_000
    refused = upload(alice_client, content=bytes(4_001))
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "storage_full")
    assert Import.objects.count() == 1, "what is refused leaves nothing"
    assert list(job.folder().iterdir()) == []
    assert upload(alice_client, content=bytes(4_000)).status_code == 202


def test_a_refused_upload_can_be_retried_with_its_idempotency_key(
    alice_client: Client, settings: Any
) -> None:
    settings.MAX_STORED_BYTES = 9_000
    keyed = {"headers": {"Idempotency-Key": "k1"}}
    assert [begin(alice_client, 9_001, **keyed).status_code for _ in range(2)] == [413, 413]
    settings.MAX_STORED_BYTES = 9_001
    made = [begin(alice_client, 9_001, **keyed) for _ in range(2)]
    assert [each.status_code for each in made] == [200, 200]
    assert made[0].json() == made[1].json()


def test_an_abandoned_upload_is_deleted_with_its_file(alice_client: Client) -> None:
    gone_on, abandoned = (begin(alice_client, 10, changed=str(number)).json()["id"] for number in range(2))
    for each in (gone_on, abandoned):
        assert send_part(alice_client, each, 0, b"12345").status_code == 200
    long_ago = clock.now() - timedelta(days=3)
    Import.objects.filter(pk=abandoned).update(kept_until=clock.now() - timedelta(seconds=1))
    for path in job.folder().iterdir():
        os.utime(path, (long_ago.timestamp(), long_ago.timestamp()))
    job.sweep(clock.now())
    assert [path.name for path in job.folder().iterdir()] == [gone_on]
    assert alice_client.get(f"{IMPORTS}/{abandoned}").status_code == 404
    assert send_part(alice_client, abandoned, 5, b"67890").status_code == 404
    assert send_part(alice_client, gone_on, 5, b"67890").json()["state"] == "waiting"
    assert alice_client.delete(f"{IMPORTS}/{gone_on}").status_code == 409, "it is going on"


def test_an_import_that_failed_with_an_internal_error_can_be_retried(
    alice_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = upload(alice_client, chatgpt()).json()["id"]

    def breaks(**_: Any) -> bool:
        raise LookupError("nobody expected this")

    with monkeypatch.context() as patched:
        patched.setattr(job, "import_file", breaks)
        work(made)
    failed = now_as(alice_client, made)
    assert (failed["state"], failed["can_try_again"], failed["error"]) == ("failed", True, job.BROKEN)
    again = alice_client.post(f"{IMPORTS}/{made}/retry")
    assert (again.status_code, again.json()["state"], again.json()["error"]) == (202, "waiting", "")
    work(made)
    done = now_as(alice_client, made)
    assert (done["state"], done["conversations"], done["can_try_again"]) == ("done", 1, False)
    assert alice_client.post(f"{IMPORTS}/{made}/retry").status_code == 409
    assert list(job.folder().iterdir()) == []


def test_the_file_of_a_failed_import_is_kept_for_two_days(alice_client: Client) -> None:
    made = upload(alice_client, chatgpt()).json()["id"]
    Import.objects.update(state="failed", kept_until=clock.now() + timedelta(days=2), finished_at=clock.now())
    long_ago = (clock.now() - timedelta(hours=1)).timestamp()
    os.utime(job.folder() / made, (long_ago, long_ago))
    job.sweep(clock.now())
    assert [path.name for path in job.folder().iterdir()] == [made]
    job.sweep(clock.now() + timedelta(days=2, seconds=1))
    assert list(job.folder().iterdir()) == []
    assert now_as(alice_client, made)["can_try_again"] is False
    assert alice_client.post(f"{IMPORTS}/{made}/retry").status_code == 409


def test_other_users_cannot_extend_delete_or_retry_an_upload(
    alice_client: Client, charlie: User, alice: User, api_client: Clients
) -> None:
    made = begin(alice_client, 10).json()["id"]
    other = api_client(charlie)
    assert send_part(other, made, 0, b"12345").status_code == 404
    assert other.post(f"{IMPORTS}/{made}/retry").status_code == 404
    assert other.delete(f"{IMPORTS}/{made}").status_code == 404
    assert begin(other, 10).json()["id"] != made
    assert send_part(api_client(alice, ["read"]), made, 0, b"12345").status_code == 403


def test_the_number_of_waiting_imports_is_limited(alice_client: Client) -> None:
    answers = [upload(alice_client, chatgpt()).status_code for _ in range(4)]
    assert answers == [202, 202, 202, 409]
    assert len(list(job.folder().iterdir())) == 3, "what is refused is not kept"


def test_other_users_and_tokens_without_the_scope_cannot_see_an_import(
    alice_client: Client, alice: User, charlie: User, api_client: Clients, client: Client
) -> None:
    made = upload(alice_client, chatgpt()).json()["id"]
    assert api_client(charlie).get(f"{IMPORTS}/{made}").status_code == 404
    assert api_client(charlie).get(IMPORTS).json()["items"] == []
    assert upload(api_client(alice, ["read"]), chatgpt()).status_code == 403
    assert api_client(alice, ["memory"]).get(f"{IMPORTS}/{made}").status_code == 403
    assert upload(client, chatgpt()).status_code == 401


def test_the_sweep_deletes_files_that_no_import_needs(alice: User, alice_client: Client) -> None:
    kept = upload(alice_client, chatgpt()).json()["id"]
    gone = upload(alice_client, claude()).json()["id"]
    Import.objects.filter(pk=gone).delete()
    long_ago = (clock.now() - timedelta(hours=1)).timestamp()
    for path in job.folder().iterdir():
        os.utime(path, (long_ago, long_ago))
    job.sweep(clock.now())
    assert [path.name for path in job.folder().iterdir()] == [kept]


def test_the_sweep_passes_over_other_files_and_those_deleted_meanwhile(alice_client: Client) -> None:
    gone = upload(alice_client, chatgpt()).json()["id"]
    Import.objects.filter(pk=gone).delete()
    for name in ("a-b-c-d-e", "0-0-0-0-0", "f-f-f-f-f"):
        (job.folder() / name).touch()
    deleted = job.folder() / str(new_id())
    deleted.symlink_to(job.folder() / "nothing")
    long_ago = (clock.now() - timedelta(hours=1)).timestamp()
    for path in job.folder().iterdir():
        os.utime(path, (long_ago, long_ago), follow_symlinks=False)
    job.sweep(clock.now())
    left = {path.name for path in job.folder().iterdir()}
    assert left == {"a-b-c-d-e", "0-0-0-0-0", "f-f-f-f-f", deleted.name}


def test_the_api_estimates_the_cost_of_summarising_imports(
    alice: User, alice_client: Client, api_client: Clients, charlie: User
) -> None:
    ModelConfig.objects.update(is_default=False)
    ModelConfig.objects.create(name="Priced", is_default=True, input_price=2, base_url="http://127.0.0.1:9/")
    made = upload(alice_client, chatgpt()).json()
    work(made["id"])
    told = alice_client.get(f"{IMPORTS}/cost").json()
    assert (told["conversations"], told["model"], told["embedding_tokens"]) == (1, "Priced", 0)
    assert told["messages"] == now_as(alice_client, made["id"])["messages"]
    assert told["cost"] == round(told["tokens"] * 2 / 1e6, 4)
    nothing = api_client(charlie).get(f"{IMPORTS}/cost").json()
    assert (nothing["conversations"], nothing["tokens"]) == (0, 0)


def test_the_estimate_uses_the_same_default_price_as_model_calls(alice: User, alice_client: Client) -> None:
    ModelConfig.objects.update(is_default=False)
    model = ModelConfig.objects.create(name="Known", is_default=True, model_id="gpt-4o")
    work(upload(alice_client, chatgpt()).json()["id"])
    told = alice_client.get(f"{IMPORTS}/cost").json()
    price = price_call(model, TokenUsage(1_000_000, 0))
    assert price
    assert told["cost"] == round(float(price) * told["tokens"] / 1e6, 4)
    assert told["cost"] > 0
    ModelConfig.objects.filter(pk=model.pk).update(model_id="of-nobody")
    assert alice_client.get(f"{IMPORTS}/cost").json()["cost"] is None
