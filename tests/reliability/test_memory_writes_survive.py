"""kill -9 at any step of a memory write leaves exactly one entry in the rows, in its file and in the index."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from tests.reliability.blocking import FileLock, WriteLock, unread_draft
from tests.reliability.compacting import (
    compact,
    daily_sections,
    long_conversation,
    send_task,
    wait_for_idle_worker,
)
from tests.reliability.installation import Installation, kill_group
from tests.reliability.people import Person
from tests.reliability.scripting import Script, new_key
from tests.servers.behaviour import Behaviour, says
from tests.servers.waiting import wait_for


@pytest.fixture
def folder(installation: Installation, alice: Person) -> Path:
    user_id = alice.client.get("/api/v1/me").json()["id"]
    return Path(installation.env["DATA_DIR"]) / "memory" / user_id


@pytest.fixture
def files(folder: Path) -> Iterator[FileLock]:
    lock = FileLock(folder)
    yield lock
    lock.release()


@pytest.fixture
def writes(installation: Installation) -> Iterator[WriteLock]:
    lock = WriteLock(installation)
    yield lock
    lock.release()


@pytest.mark.mechanism("memory.killed")
def test_a_worker_killed_at_each_step_of_a_memory_write_leaves_one_entry(
    installation: Installation,
    alice: Person,
    script: Script,
    folder: Path,
    files: FileLock,
    writes: WriteLock,
) -> None:
    key = new_key("learned")

    def lock_writes() -> Behaviour:
        writes.take()
        return says(f"The user counts notes. {key} LOST")

    def lock_files() -> Behaviour:
        files.take()
        return says(f"The user counts notes. {key} LEARNED")

    script.answer(key, lock_writes, lock_files, says(f"{key} AGAIN"), kind="summary")
    conversation = long_conversation(alice, key)
    compaction = compact(alice, conversation)

    # Kill after the model's answer and before the commit.
    script.wait_for_request(key, "summary", event="finished")
    installation.kill_workers()
    writes.release()
    installation.start()
    assert "LOST" not in str(alice.entries(conversation))

    # Kill after the commit and before the file is written.
    alice.wait_for_compaction(conversation, compaction, "done")
    [entry] = stored_entries(installation, alice, conversation)
    installation.kill_workers()
    assert daily_sections(installation, conversation) == 0

    # Kill while the file is being written.
    file = folder / f"{entry['day']}.md"
    with unread_draft(file):
        files.release()
        installation.start()
        hurry(installation)
        wait_for(files.is_held_elsewhere, what="the file is being written")
        installation.kill_workers()
    assert conversation not in (file.read_text() if file.exists() else "")

    # Kill after the file is written and before the row records it.
    files.take()
    installation.start()
    writes.take()
    files.release()
    hurry(installation)
    wait_for(lambda: daily_sections(installation, conversation) == 1, what="the file is written")
    installation.kill_workers()
    writes.release()
    installation.start()
    hurry(installation)
    wait_for(lambda: told(alice, conversation), what="the row knows it")

    # Deliver the task again after everything is done.
    if installation.is_production:
        send_task(installation, "chatapp.compaction.tasks.compact", compaction)
        send_task(installation, "chatapp.operations.tasks.sweep")
        wait_for_idle_worker(installation)
    assert len(script.requests(key, "summary")) == 2
    assert_one_entry(installation, alice, conversation, f"{key} LEARNED")


def hurry(installation: Installation) -> None:
    """Send the sweep's task to the worker. The embedded installation has to wait for its periodic sweep."""
    if installation.is_production:
        send_task(installation, "chatapp.operations.tasks.sweep")


def stored_entries(installation: Installation, alice: Person, conversation: str) -> list[dict[str, str]]:
    found = alice.entries(conversation)
    assert len(found) == 1, installation.output()
    return found


def told(alice: Person, conversation: str) -> list[str]:
    """Return the data of the `memory.written` events of this conversation."""
    path = f"/api/v1/conversations/{conversation}/events"
    ids: list[str] = []
    seq = alice.last_seq(conversation)
    with alice.client.stream("GET", path, params={"after_seq": 0}) as stream:
        kind = ""
        for line in stream.iter_lines():
            kind = line.removeprefix("event: ") if line.startswith("event: ") else kind
            if line.startswith("data: ") and kind == "memory.written":
                ids.append(line)
            if line == f"id: {seq}":
                seq = -1
            if seq == -1 and not line:
                break
    return ids


def assert_one_entry(installation: Installation, alice: Person, conversation: str, mark: str) -> None:
    [entry] = stored_entries(installation, alice, conversation)
    assert mark in entry["text"]
    assert daily_sections(installation, conversation) == 1
    assert len(told(alice, conversation)) == 1
    found = alice.client.get("/api/v1/memory/search", params={"q": mark, "limit": 50}).json()["items"]
    here = [item["source"] for item in found if item["source"].get("conversation_id") == conversation]
    assert [source["entry_id"] for source in here if source["kind"] == "entry"] == [entry["id"]]
    with zipfile.ZipFile(io.BytesIO(alice.client.get("/api/v1/memory/export").content)) as archive:
        texts = [archive.read(name).decode() for name in archive.namelist()]
    assert sum(text.count(entry["id"]) for text in texts) == 1


DAY = "2026-03-05"
BEFORE = (
    "The cranes came back on the fifth.",
    "The harbour was frozen until noon.",
    "Tea with Odile at four.",
)


@pytest.mark.mechanism("memory.markdown")
def test_a_day_whose_writer_is_killed_is_either_the_old_or_the_new_version(
    installation: Installation, alice: Person, files: FileLock, writes: WriteLock, folder: Path
) -> None:
    for text in BEFORE:
        made = alice.client.post("/api/v1/memory/entries", json={"text": text, "day": DAY})
        assert made.status_code == 201, made.text
    before = read_day(alice)
    file = folder / f"{DAY}.md"
    after = changed(before["markdown"])

    # Kill before the rows are committed: nothing has changed.
    writes.take()
    put_and_kill(installation, alice, after)
    writes.release()
    installation.start()
    assert read_day(alice)["markdown"] == before["markdown"] == file.read_text()

    # Kill between the commit and the file: the sweep writes the file.
    files.take()
    put_and_kill(installation, alice, after, once=lambda: "storks" in read_day(alice)["markdown"])
    assert file.read_text() == before["markdown"]
    files.release()
    installation.start()
    hurry(installation)
    assert_changed(alice)
    wait_for(lambda: file.read_text() == read_day(alice)["markdown"], what="it is written")

    # A client that got no response retries.
    again = alice.client.put(f"/api/v1/memory/days/{DAY}", json={"markdown": after})
    assert again.status_code == 200, again.text
    assert_changed(alice)


def put_and_kill(
    installation: Installation, alice: Person, markdown: str, once: Callable[[], bool] | None = None
) -> None:
    """Send the day in a request that cannot end. Kill the process after 3 seconds, or when `once` returns true."""
    address = f"/api/v1/memory/days/{DAY}"
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(
            alice.client.put, address, json={"markdown": markdown}, timeout=60 if once else 3
        )
        if once:
            wait_for(once, what="the rows are committed")
        else:
            wait_for(asked.done, what="nobody waits any longer")
        kill_group(installation.first)
        assert isinstance(
            asked.exception(), httpx2.ReadTimeout | httpx2.RemoteProtocolError | httpx2.ReadError
        )


def changed(markdown: str) -> str:
    """Return a day's Markdown with one entry edited, one removed and one added."""
    assert "cranes" in markdown
    without = markdown.replace("The cranes came back", "The storks came back")
    head, _, rest = without.partition("## ")
    sections = [f"## {section}" for section in rest.split("\n## ")]
    kept = [section for section in sections if "harbour" not in section]
    return head + "\n".join([*kept, "## 18:30\n\nA letter from Tamsin.\n"])


def read_day(alice: Person) -> dict[str, str]:
    answer = alice.client.get(f"/api/v1/memory/days/{DAY}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def assert_changed(alice: Person) -> None:
    markdown = read_day(alice)["markdown"]
    for text in ("The storks came back", "Tea with Odile", "A letter from Tamsin"):
        assert markdown.count(text) == 1
    assert "cranes" not in markdown
    assert "harbour" not in markdown
