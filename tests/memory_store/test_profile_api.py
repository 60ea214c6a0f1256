"""The profile over the API: Markdown in and out, its versions, and its file beside the daily files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.long_term import files as memory_files
from chatapp.long_term.models import Profile

Clients = Callable[..., Client]
PROFILE = "/api/v1/memory/profile"


@pytest.fixture
def client(alice: User, api_client: Clients) -> Client:
    return api_client(alice)


def put(client: Client, markdown: str, **headers: str) -> Any:
    return client.put(PROFILE, {"markdown": markdown}, content_type="application/json", headers=headers)


def file_of(user: User) -> str | None:
    path = memory_files.profile_path(user.pk)
    return path.read_text() if path.exists() else None


def test_a_profile_begins_empty(client: Client):
    profile = client.get(PROFILE).json()
    assert profile["markdown"] == ""
    assert profile["version"] == 0
    assert profile["author"] is None
    assert profile["is_used"] is True
    assert not Profile.objects.exists()


def test_a_written_profile_can_be_read_and_is_in_its_file(alice: User, client: Client):
    answer = put(client, "## Me\n\n- Plays the cello.\n")
    assert answer.status_code == 200, answer.content
    assert answer.json()["version"] == 1
    assert answer.json()["author"] == "user"
    assert client.get(PROFILE).json() == answer.json()
    assert file_of(alice) == "## Me\n\n- Plays the cello.\n"
    raw = client.get(PROFILE, headers={"accept": "text/markdown"})
    assert raw.content.decode() == "## Me\n\n- Plays the cello."


def test_raw_markdown_is_accepted(client: Client):
    answer = client.put(PROFILE, "- Spielt Cello. ÄÖ", content_type="text/markdown")
    assert answer.json()["markdown"] == "- Spielt Cello. ÄÖ"


def test_an_emptied_profile_has_no_file(alice: User, client: Client):
    put(client, "- Plays the cello.")
    assert put(client, "").json()["markdown"] == ""
    assert file_of(alice) is None


@pytest.mark.mechanism("memory.profile-versions")
def test_versions_are_kept_and_can_be_compared_and_reverted_to(client: Client):
    put(client, "- Cello.\n- Lisbon.")
    put(client, "- Violin.\n- Lisbon.")
    put(client, "- Violin.\n- Lisbon.")
    first = client.get(f"{PROFILE}/versions?limit=1").json()
    assert [row["version"] for row in first["items"]] == [2]
    rest = client.get(f"{PROFILE}/versions?cursor={first['next_cursor']}").json()
    assert [row["version"] for row in rest["items"]] == [1]
    assert rest["next_cursor"] is None
    second = client.get(f"{PROFILE}/versions/2").json()
    assert second["against"] == 1
    assert [(change["kind"], change["text"]) for change in second["changes"]] == [
        ("removed", "- Cello."),
        ("added", "- Violin."),
        ("same", "- Lisbon."),
    ]
    whole = client.get(f"{PROFILE}/versions/2?against=0").json()["changes"]
    assert {change["kind"] for change in whole} == {"added"}
    reverted = client.post(f"{PROFILE}/versions/1/revert").json()
    assert reverted["version"] == 3
    assert reverted["markdown"] == "- Cello.\n- Lisbon."


def test_a_revert_can_be_reverted(alice: User, client: Client):
    texts = {1: "- Cello.", 2: "- Violin."}
    for text in texts.values():
        put(client, text)
    for made, number in ((3, 1), (4, 2), (5, 3)):
        texts[made] = texts[number]
        reverted = client.post(f"{PROFILE}/versions/{number}/revert").json()
        assert (reverted["version"], reverted["markdown"]) == (made, texts[number])
        assert file_of(alice) == f"{texts[number]}\n"
    assert {
        number: client.get(f"{PROFILE}/versions/{number}").json()["markdown"] for number in texts
    } == texts


def test_changing_a_profile_that_was_changed_meanwhile_is_a_conflict(client: Client):
    tag = put(client, "One.")["ETag"]
    assert put(client, "Two.", **{"if-match": tag}).status_code == 200
    for late in (tag, '"nonsense"'):
        assert put(client, "Three.", **{"if-match": late}).status_code == 409
    assert client.get(PROFILE).json()["markdown"] == "Two."


def test_each_user_has_a_profile_of_their_own(client: Client, charlie: User, api_client: Clients):
    put(client, "- Alice's.")
    other = api_client(charlie)
    assert other.get(PROFILE).json()["markdown"] == ""
    assert other.get(f"{PROFILE}/versions").json()["items"] == []
    assert other.get(f"{PROFILE}/versions/1").status_code == 404
    assert other.post(f"{PROFILE}/versions/1/revert").status_code == 404
    put(other, "- Charlie's.")
    assert client.get(PROFILE).json()["markdown"] == "- Alice's."


def test_a_read_only_token_cannot_write_the_profile(alice: User, api_client: Clients):
    assert put(api_client(alice, ["read"]), "x").status_code == 403


@pytest.mark.parametrize("cursor", ["x", "-1", "9" * 30])
def test_an_invalid_cursor_returns_422(client: Client, cursor: str):
    assert client.get(f"{PROFILE}/versions?cursor={cursor}").status_code == 422


def test_a_profile_file_that_could_not_be_written_is_written_by_the_sweep(alice: User, client: Client):
    put(client, "One.")
    in_the_way = memory_files.user_folder(alice.pk) / ".MEMORY.md.new"
    in_the_way.mkdir()
    assert put(client, "Two.").status_code == 200
    assert file_of(alice) == "One.\n"
    in_the_way.rmdir()
    assert memory_files.sweep_unwritten() == 1
    assert file_of(alice) == "Two.\n"
    assert memory_files.sweep_unwritten() == 0


def test_a_lost_file_is_rebuilt(alice: User, client: Client):
    put(client, "One.")
    memory_files.profile_path(alice.pk).unlink()
    memory_files.rebuild_files(alice.pk)
    assert file_of(alice) == "One.\n"
