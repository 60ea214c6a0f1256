"""Makes the data folder that the upgrade test starts from: `make upgrade-dump`.

Run this only while `0001_initial` may still be rewritten. Once it is released, the folder must not change, because it
then represents the data of existing installations.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import httpx2

from tests.environment import clean_environment
from tests.servers.people import ALICE, make_people
from tests.servers.service import Service, run_manage
from tests.servers.waiting import wait_for
from tests.upgrade.data_folder import pack

DUMP = Path(__file__).with_name("first_schema.txt")
SAID = "Our boat is called Halcyon and lies in Trondheim."
ENTRY = "The budget of the boat is 6,500 €."
PROFILE = "- Restores a wooden boat"
NOTE = b"Planks 5 and 6 are of larch."
HISTORY = [
    {"role": role, "content": text}
    for number in range(12)
    for role, text in (
        ("user", f"Plank {number} is QX-{number:03d}. What of it?"),
        ("assistant", f"Plank {number} is sound."),
    )
]


def main() -> None:
    clean_environment()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "data"
        env = {"DATA_DIR": str(folder)}
        migrated = run_manage(env, "migrate", "--verbosity=0")
        assert migrated.returncode == 0, migrated.stderr
        tokens = make_people(env, [ALICE]).tokens
        service = Service([], Path(temporary) / "service.log", env, tokens=tokens).start()
        try:
            facts = fill(service.client_of(ALICE))
        finally:
            service.stop()
        text = pack(folder, {"token": tokens[ALICE], **facts})
    DUMP.write_text(text)
    print(f"{DUMP.name}: {len(text):,} characters")


def fill(alice: httpx2.Client) -> dict[str, Any]:
    """Create a chat with an answer and a file, a compacted chat, an entry and a profile. Return facts about them."""
    file = send(alice, "POST", "files", files={"file": ("planks.txt", NOTE, "text/plain")})["id"]
    chat = send(alice, "POST", "conversations", json={"title": "The boat"})["id"]
    question = {"content": SAID, "attachments": [file], "stream": False}
    send(alice, "POST", f"conversations/{chat}/messages", json=question)
    long = send(alice, "POST", "conversations/import", json={"title": "Planks", "messages": HISTORY})["id"]
    send(alice, "PATCH", f"conversations/{long}", json={"context_policy": {"keep_recent": 2}})
    compaction = send(alice, "POST", f"conversations/{long}/compact", json={"wait": True})
    send(alice, "POST", "memory/entries", json={"text": ENTRY, "day": "2026-11-20"})
    send(alice, "PUT", "memory/profile", json={"markdown": PROFILE})
    for words in (SAID, ENTRY):
        wait_for(lambda: found(alice, words), what=f"{words!r} is in the search")  # noqa: B023
    return {"chat": chat, "long": long, "file": file, "summary": compaction["summary"]}


def send(client: httpx2.Client, method: str, path: str, **options: Any) -> dict[str, Any]:
    answer = client.request(method, f"/api/v1/{path}", **options)
    assert answer.status_code < 300, f"{method} {path}: {answer.status_code} {answer.text}"
    return dict(answer.json())


def found(client: httpx2.Client, words: str) -> bool:
    items = send(client, "GET", "memory/search", params={"q": words})["items"]
    return any(words in item["text"] for item in items)


if __name__ == "__main__":
    main()
