"""Every GET response has an ETag, and an unchanged response is not sent again: 304, on every path."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from chatapp.accounts.models import User
from chatapp.files.attachments import content_path
from chatapp.files.models import Attachment
from chatapp.long_term.changes import write_profile
from chatapp.long_term.models import MemoryEntry
from chatapp.operations import clock
from chatapp.providers.models import ModelConfig
from tests.api.description import all_operations
from tests.api.everything import one_of_everything
from tests.api.program import Program

STREAMED = ("/export", "/events", "/content")
"""Downloads and streams, which are not buffered before they are sent."""


@pytest.mark.parametrize("accept", ["application/json", "text/markdown"])
async def test_every_path_returns_304_for_an_unchanged_response(
    alice: User, alice_program: Program, model: ModelConfig, accept: str
) -> None:
    names = await sync_to_async(one_of_everything)(alice)
    names |= {"version": "1", "day": await sync_to_async(prepare)(alice, names["file_id"])}
    answered = set()
    for method, path in all_operations():
        address = path.format(**names)
        if method.upper() != "GET" or address.endswith(STREAMED):
            continue
        first = await alice_program.get(address, {"accept": accept})
        if first.status_code != 200:
            continue
        assert "etag" in first.headers, path
        again = await alice_program.get(
            address, {"accept": accept, "if-none-match": f'"other", {first.headers["etag"]}'}
        )
        assert (again.status_code, again.content) == (304, b""), path
        assert again.headers["etag"] == first.headers["etag"], path
        answered.add(path.removeprefix("/api/v1"))
    assert len(answered) > 40
    assert {"/memory/days/{day}", "/memory/profile", "/files/{file_id}", "/runs/{run_id}"} <= answered


def prepare(user: User, file_id: str) -> str:
    """Write the content of the file, and a profile. Return the day of the entry."""
    path = content_path(Attachment.objects.get(pk=file_id).sha256)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    write_profile(user=user, text="Keeps bees.", version=None, now=clock.now())
    return MemoryEntry.objects.get(user=user).day.isoformat()


def test_a_change_without_a_new_version_is_sent_but_does_not_block_writing(
    alice: User, api_client: Any
) -> None:
    client, address = api_client(alice), "/api/v1/memory/profile"
    tag = client.put(address, {"markdown": "One."}, "application/json")["ETag"]
    assert client.get(address)["ETag"] == tag
    client.patch("/api/v1/memory/settings", {"paused": True}, "application/json")
    answer = client.get(address, headers={"If-None-Match": tag})
    assert (answer.status_code, answer.json()["is_used"], answer.json()["version"]) == (200, False, 1)
    assert client.get(address, headers={"accept": "text/markdown"})["ETag"] != answer["ETag"]
    for accepted in (tag, '"2"', "*"):  # only the version in the tag counts
        written = client.put(
            address, {"markdown": "Two."}, "application/json", headers={"If-Match": accepted}
        )
        assert written.status_code == 200, accepted
    late = client.put(address, {"markdown": "Three."}, "application/json", headers={"If-Match": tag})
    assert late.status_code == 409
