"""A REST client of one user: what it sends, and what it then finds stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx2

from tests.servers.waiting import wait_for

ASYNC = {"Prefer": "respond-async"}
ENDED = ("complete", "stopped", "failed", "interrupted")


@dataclass
class Person:
    client: httpx2.Client

    def new_conversation(self, **fields: Any) -> str:
        answer = self.client.post("/api/v1/conversations", json=fields)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def post(
        self, conversation: str, content: str, headers: dict[str, str] | None = None, **fields: Any
    ) -> httpx2.Response:
        path = f"/api/v1/conversations/{conversation}/messages"
        return self.client.post(path, json={"content": content, **fields}, headers=headers)

    def send(self, conversation: str, content: str, **fields: Any) -> dict[str, Any]:
        """Send a message; return `{run_id, message_id, answer_id, seq}` as soon as it is accepted."""
        answer = self.post(conversation, content, ASYNC, **fields)
        assert answer.status_code == 202, answer.text
        return dict(answer.json())

    def ask(self, conversation: str, content: str, **fields: Any) -> httpx2.Response:
        """Send a message and return the complete answer, or the error."""
        return self.post(conversation, content, stream=False, **fields)

    def act(self, path: str, **fields: Any) -> dict[str, Any]:
        answer = self.client.post(f"/api/v1/{path}", json=fields, headers=ASYNC)
        assert answer.status_code == 202, answer.text
        return dict(answer.json())

    def run(self, run_id: str) -> dict[str, Any]:
        answer = self.client.get(f"/api/v1/runs/{run_id}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def wait_for_end(self, run_id: str) -> dict[str, Any]:
        def ended() -> dict[str, Any] | None:
            run = self.run(run_id)
            return run if run["status"] in ENDED else None

        run = wait_for(ended, what=f"run {run_id} ends", explain=lambda: str(self.run(run_id)))
        assert run
        return run

    def messages(self, conversation: str) -> list[dict[str, Any]]:
        answer = self.client.get(f"/api/v1/conversations/{conversation}/messages", params={"limit": 200})
        assert answer.status_code == 200, answer.text
        return list(answer.json()["items"])

    def message(self, conversation: str, message_id: str) -> dict[str, Any]:
        answer = self.client.get(f"/api/v1/conversations/{conversation}/messages/{message_id}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def text(self, conversation: str, message_id: str) -> str:
        return str(self.message(conversation, message_id)["content"])

    def wait_for_text(self, conversation: str, message_id: str, words: str) -> str:
        """Wait until the stored text contains these words, and return it."""
        return (
            wait_for(
                lambda: words in (text := self.text(conversation, message_id)) and text,
                what=f"{words!r} is stored",
            )
            or ""
        )

    def last_seq(self, conversation: str) -> int:
        return int(self.client.get(f"/api/v1/conversations/{conversation}").json()["last_seq"])

    def compactions(self, conversation: str) -> list[dict[str, Any]]:
        return list(self.client.get(f"/api/v1/conversations/{conversation}/compactions").json()["items"])

    def wait_for_compaction(self, conversation: str, compaction: str, status: str) -> dict[str, Any]:
        def reached() -> dict[str, Any] | None:
            rows = self.compactions(conversation)
            return next((row for row in rows if (row["id"], row["status"]) == (compaction, status)), None)

        what = f"compaction {compaction} is {status}"
        row = wait_for(reached, what=what, explain=lambda: str(self.compactions(conversation)))
        assert row
        return row

    def wait_for_entries(self, conversation: str) -> list[dict[str, Any]]:
        return wait_for(lambda: self.entries(conversation), what="a memory entry")

    def entries(self, conversation: str) -> list[dict[str, Any]]:
        """Return the memory entries of all days that came from this conversation."""
        days = self.client.get("/api/v1/memory/days").json()["items"]
        found = [self.client.get(f"/api/v1/memory/days/{day['day']}").json()["entries"] for day in days]
        return [entry for entries in found for entry in entries if entry["conversation_id"] == conversation]
