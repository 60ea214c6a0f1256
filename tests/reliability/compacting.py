"""Conversations that are long enough to be summarised."""

from __future__ import annotations

from pathlib import Path

from celery import Celery

from tests.reliability.installation import Installation
from tests.reliability.people import Person


def long_conversation(person: Person, key: str, count: int = 40, first: str = "") -> str:
    """Import a conversation, too short to be summarised automatically. Every message contains the key, except `first`,
    which precedes them."""
    messages = [
        {
            "role": "user" if number % 2 == 0 else "assistant",
            "content": f"{key} note {number} of the archive, with code QX-{number:05d} and twelve more words of no use.",
        }
        for number in range(count)
    ]
    messages[:0] = (
        [{"role": "user", "content": first}, {"role": "assistant", "content": "Noted."}] if first else []
    )
    answer = person.client.post("/api/v1/conversations/import", json={"title": key, "messages": messages})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def compact(person: Person, conversation: str) -> str:
    """Request a summary of all but the newest messages. Return its id, or the id of one that is already in progress."""
    answer = person.client.post(f"/api/v1/conversations/{conversation}/compact", json={"wait": False})
    active = [row for row in person.compactions(conversation) if row["status"] in ("pending", "running")]
    if answer.status_code == 409 and active:
        return str(active[0]["id"])
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def daily_sections(installation: Installation, conversation: str) -> int:
    """Count the sections of daily files that came from this conversation."""
    files = (Path(installation.env["DATA_DIR"]) / "memory").glob("*/*.md")
    return sum(file.read_text().count(conversation) for file in files)


def send_task(production: Installation, name: str, *arguments: str) -> None:
    """Send a task through the broker, as another process would."""
    with Celery(broker=production.env["REDIS_URL"], set_as_current=False) as app:
        app.conf.task_default_queue = "palimpsest"
        app.send_task(name, args=arguments)


def wait_for_idle_worker(production: Installation) -> None:
    """Wait until both processes of the worker have finished all tasks sent before."""
    assert production.worker
    for _ in range(4):
        printed = len(production.worker.output())
        send_task(production, "chatapp.operations.tasks.sweep")
        production.worker.wait_for_output(
            r"Task chatapp\.operations\.tasks\.sweep\[.*\] succeeded", since=printed
        )
