"""On a full disk requests fail with a clear message and store nothing in part. They work again once there is space."""

from __future__ import annotations

import httpx2
import pytest

from tests.faults.outages import no_room
from tests.reliability.installation import Installation
from tests.reliability.people import ASYNC, Person
from tests.reliability.scripting import Script, new_key
from tests.servers.waiting import PATIENCE_S


def upload(person: Person, content: bytes) -> httpx2.Response:
    return person.client.post("/api/v1/files", files={"file": ("notes.txt", content, "text/plain")})


@pytest.mark.mechanism("contract.errors")
def test_a_full_disk_is_reported_and_leaves_no_partial_data(
    embedded: Installation, alice: Person, script: Script
) -> None:
    key = new_key("full")
    script.answer(key, "There was room.")
    conversation = alice.new_conversation()
    text = f"A file of {key}. ".encode() * 200
    printed = len(embedded.first.output())
    with no_room(embedded.processes):
        refused = [
            upload(alice, text),
            upload(alice, text),
            alice.post(conversation, key, ASYNC, client_id=key),
        ]
        page = httpx2.get(f"{embedded.first.url}/readyz", timeout=PATIENCE_S)
        shown = alice.messages(conversation)
    for answer in refused:
        assert (answer.status_code, answer.json()["error"]["code"]) == (507, "storage_full"), answer.text
        assert "disk of this service is full" in answer.json()["error"]["message"]
    assert (page.status_code, page.json()["checks"]["storage"]) == (503, "the disk is full")
    assert shown == [], "what is stored can be read"

    assert "Traceback" not in embedded.first.output()[printed:]
    assert upload(alice, text).status_code == 201
    sent = alice.send(conversation, key, client_id=key)
    assert alice.wait_for_end(sent["run_id"])["status"] == "complete"
    assert [message["content"] for message in alice.messages(conversation)] == [key, "There was room."]
    assert httpx2.get(f"{embedded.first.url}/readyz", timeout=PATIENCE_S).status_code == 200
