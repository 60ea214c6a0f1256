"""A data folder of the first schema is migrated, and everything in it can be read and continued."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from tests.servers.people import ALICE
from tests.servers.service import OwnProcess, Service, run_manage
from tests.upgrade.data_folder import unpack
from tests.upgrade.dump import DUMP, ENTRY, HISTORY, NOTE, PROFILE, SAID, found, send


@pytest.fixture
def upgraded(tmp_path: Path, processes: list[OwnProcess]) -> tuple[httpx2.Client, dict[str, str]]:
    """Return alice's client at a service on the migrated folder, and the facts about its content."""
    env = {"DATA_DIR": str(tmp_path / "data")}
    facts = unpack(DUMP.read_text(), tmp_path / "data")
    migrated = run_manage(env, "migrate", "--verbosity=0")
    assert migrated.returncode == 0, migrated.stderr
    service = Service([], tmp_path / "service.log", env, tokens={ALICE: facts["token"]}, is_forked=True)
    processes.append(service)
    return service.start().client_of(ALICE), facts


def test_data_from_before_the_upgrade_can_be_read_found_and_continued(
    upgraded: tuple[httpx2.Client, dict[str, str]],
) -> None:
    alice, facts = upgraded
    question, answer = send(alice, "GET", f"conversations/{facts['chat']}/messages")["items"]
    assert (question["content"][-1]["text"], answer["status"]) == (SAID, "complete")
    assert alice.get(f"/api/v1/files/{facts['file']}").content == NOTE

    kept = send(alice, "GET", f"conversations/{facts['long']}/messages")["items"]
    assert [(row["role"], row["content"]) for row in kept] == [
        (row["role"], row["content"]) for row in HISTORY
    ]
    [compaction] = send(alice, "GET", f"conversations/{facts['long']}/compactions")["items"]
    assert compaction["summary"] == facts["summary"]

    [entry] = [
        entry
        for day in send(alice, "GET", "memory/days")["items"]
        for entry in send(alice, "GET", f"memory/days/{day['day']}")["entries"]
        if entry["text"] == ENTRY
    ]
    assert send(alice, "GET", "memory/profile")["markdown"] == PROFILE
    assert found(alice, SAID)
    assert found(alice, ENTRY)

    more = send(
        alice, "POST", f"conversations/{facts['long']}/messages", json={"content": "Go on.", "stream": False}
    )
    assert more["message"]["status"] == "complete"
    assert alice.delete(f"/api/v1/memory/entries/{entry['id']}").status_code == 204
    assert not found(alice, ENTRY)
