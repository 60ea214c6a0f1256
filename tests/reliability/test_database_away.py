"""The database drops all connections, is locked or is down for a while. Answers in progress wait for it."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import httpx2
import psycopg
import pytest

from tests.reliability.installation import LEASE_S, PEOPLE, Installation
from tests.reliability.people import ASYNC, Person
from tests.reliability.readers import SocketReader
from tests.reliability.scripting import Script, new_key, slowly, words
from tests.servers.postgres import Postgres
from tests.servers.waiting import PATIENCE_S
from tests.servers.websocket import connect, receive

CUT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def test_answers_survive_dropped_database_connections(
    production: Installation, alice: Person, alice_elsewhere: Person, script: Script
) -> None:
    key = new_key("cut")
    text = words(60)
    script.answer(key, slowly(text, rate=20))
    conversations = [alice.new_conversation() for _ in range(6)]
    token = production.tokens[PEOPLE[0]]
    readers = [SocketReader(service, token, conversations[0]) for service in production.webs]
    runs = [alice.send(conversation, key) for conversation in conversations]
    with psycopg.connect(production.env["DATABASE_URL"], autocommit=True) as connection:
        for _ in range(3):
            readers[0].wait_for(lambda story: story.texts, "the first words")
            connection.execute(CUT)
            time.sleep(0.3)
    for person in (alice, alice_elsewhere):
        sent = person.post(person.new_conversation(), f"After the cut {key}", ASYNC)
        assert sent.status_code == 202, sent.text
    for conversation, run in zip(conversations, runs, strict=True):
        assert alice_elsewhere.wait_for_end(run["run_id"])["status"] == "complete"
        assert alice_elsewhere.text(conversation, run["answer_id"]) == text
    for reader in readers:
        reader.wait_for_end(runs[0]["run_id"])
        assert reader.story.texts[runs[0]["answer_id"]] == text
        reader.close()


def test_writes_wait_for_a_locked_database(embedded: Installation, alice: Person, script: Script) -> None:
    """E.g. while the file is copied: reads continue, writes wait, nothing is refused or lost."""
    key = new_key("locked")
    text = words(60)
    script.answer(key, replace(slowly(text, rate=20), hold_after=5))
    conversation, other = alice.new_conversation(), alice.new_conversation()
    reader = SocketReader(embedded.first, embedded.tokens[PEOPLE[0]], conversation)
    sent = alice.send(conversation, key)
    reader.wait_for(lambda story: story.texts, "the first words")
    lock = lock_database(embedded)
    script.server.release()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(alice.post, other, f"Wait {key}", ASYNC)
        have = len(reader.story.texts[sent["answer_id"]])
        reader.wait_for(lambda story: len(story.texts[sent["answer_id"]]) > have + 50, "more words")
        lock.execute("COMMIT")
        lock.close()
        assert waiting.result().status_code == 202
    reader.wait_for_end(sent["run_id"])
    assert alice.text(conversation, sent["answer_id"]) == text
    reader.close()


@pytest.mark.mechanism("contract.lease")
def test_a_process_that_cannot_renew_its_lease_finishes_its_answer(
    embedded: Installation, alice: Person, script: Script
) -> None:
    """The database is locked for longer than a lease while the model writes. The shown text is stored afterwards."""
    key = new_key("lease")
    outage = words(round(15 * LEASE_S * 1.4))
    text = f"{words(5)} {outage} and the end."
    script.answer(key, replace(slowly(text, rate=15), hold_after=5))
    conversation = alice.new_conversation()
    reader = SocketReader(embedded.first, embedded.tokens[PEOPLE[0]], conversation)
    sent = alice.send(conversation, key)
    reader.wait_for(lambda story: story.texts, "the first words")
    lock = lock_database(embedded)
    script.server.release()
    reader.wait_for(
        lambda story: len(story.texts[sent["answer_id"]]) > len(outage), "more than a lease of words"
    )
    lock.execute("COMMIT")
    lock.close()
    reader.wait_for_end(sent["run_id"])
    assert alice.run(sent["run_id"])["status"] == "complete"
    assert reader.story.texts[sent["answer_id"]] == text
    assert alice.text(conversation, sent["answer_id"]) == text
    reader.close()


def lock_database(embedded: Installation) -> sqlite3.Connection:
    """Return a connection that holds SQLite's write lock."""
    path = Path(embedded.env["DATA_DIR"]) / "palimpsest.sqlite3"
    lock = sqlite3.connect(path, timeout=PATIENCE_S, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    return lock


@pytest.mark.mechanism("contract.errors")
@pytest.mark.parametrize("away", [Postgres.ended, Postgres.frozen], ids=["ended", "frozen"])
def test_without_postgresql_clients_get_an_error_and_nothing_is_lost(
    production: Installation,
    alice: Person,
    script: Script,
    postgres: Postgres,
    away: Callable[[Postgres], AbstractContextManager[None]],
) -> None:
    """REST, the socket and the pages report the error. An answer in progress continues."""
    key = new_key("away")
    text = words(120)
    script.answer(key, slowly(text, rate=10))
    conversation, other = alice.new_conversation(), alice.new_conversation()
    sent = alice.send(conversation, key)
    script.wait_for_request(key, event="first_token")
    headers = {"Authorization": f"Bearer {production.tokens[PEOPLE[0]]}"}
    printed = len(production.first.output())
    frame = {"type": "message.send", "client_id": key, "conversation_id": other, "content": "Nor now"}
    with (
        connect(production.first.ws_url, additional_headers=headers) as socket,
        ThreadPoolExecutor(3) as threads,
    ):
        with away(postgres):
            socket.send(json.dumps(frame))
            refusing = threads.submit(alice.post, other, f"Not now {key}", ASYNC, client_id=f"{key}-other")
            pages = [
                threads.submit(httpx2.get, f"{production.first.url}{path}", timeout=PATIENCE_S)
                for path in ("/accounts/login/", "/readyz")
            ]
            told = receive(socket, "error")
            refused = refusing.result()
            page, ready = (each.result() for each in pages)
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (503, "unavailable")
    assert error["message"] == "The database is not available right now. Please try again."
    assert (told["code"], told["client_id"]) == ("unavailable", key)
    assert page.status_code == 503
    assert "The database is not available right now." in page.text
    assert (ready.status_code, ready.json()["checks"]["database"] == "ok") == (503, False)

    assert alice.wait_for_end(sent["run_id"])["status"] == "complete"
    assert alice.text(conversation, sent["answer_id"]) == text
    again = alice.send(other, f"Not now {key}", client_id=f"{key}-other")
    alice.wait_for_end(again["run_id"])
    assert len(alice.messages(other)) == 2
    assert "Traceback" not in production.first.output()[printed:]
