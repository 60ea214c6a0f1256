"""Conversations that are long enough to be summarised."""

from __future__ import annotations

from tests.reliability.people import Person


def long_conversation(person: Person, key: str, count: int = 40) -> str:
    """Imported, not summarised by itself: too short for the window. Every message has the key."""
    messages = [
        {
            "role": "user" if number % 2 == 0 else "assistant",
            "content": f"{key} note {number} of the archive, with code QX-{number:05d} and twelve more words of no use.",
        }
        for number in range(count)
    ]
    answer = person.client.post("/api/v1/conversations/import", json={"title": key, "messages": messages})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def compact(person: Person, conversation: str) -> str:
    """Asks for a summary of all but the newest messages; its id."""
    answer = person.client.post(f"/api/v1/conversations/{conversation}/compact", json={"wait": False})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])
