"""Readers of one conversation as docs/realtime.md describes them: they keep text by offset and request missed text."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx2
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from tests.servers.service import Service
from tests.servers.waiting import wait_for
from tests.servers.websocket import connect

ASK_AGAIN_S = 0.3


class Story:
    """The state of a reader: the numbered events in order and each answer's text. `gaps` counts deltas after a gap."""

    def __init__(self) -> None:
        self.facts: list[dict[str, Any]] = []
        self.notices: list[dict[str, Any]] = []
        self.texts: dict[str, str] = {}
        self.streamed: dict[str, str] = {}
        self.last_seq = 0
        self.gaps = 0
        self.deltas = 0

    def take(self, event: dict[str, Any]) -> str | None:
        """Apply an event. If it shows that text of a message is missing, return the message's id."""
        kind, seq = event["type"], event.get("seq")
        if seq is not None:
            assert seq == self.last_seq + 1, f"fact {seq} after {self.last_seq}: {event}"
            self.last_seq = seq
            self.facts.append(event)
        if kind == "message.completed":
            message = event["message"]
            self.streamed.setdefault(message["id"], self.texts.get(message["id"], ""))
            self.texts[message["id"]] = message["content"]
        elif kind in ("text.delta", "message.snapshot"):
            return self._append(event)
        elif seq is None:
            self.notices.append(event)
        return None

    def _append(self, event: dict[str, Any]) -> str | None:
        message_id, offset = event["message_id"], event["offset"]
        self.deltas += event["type"] == "text.delta"
        have = self.texts.get(message_id, "")
        if offset > len(have):
            self.gaps += 1
            return str(message_id)
        if message_id not in self.streamed:
            self.texts[message_id] = have + event["text"][len(have) - offset :]
        return None

    def types(self, run_id: str | None = None) -> list[str]:
        return [fact["type"] for fact in self.facts if run_id in (None, fact.get("run_id"))]

    def has_ended(self, run_id: str) -> bool:
        return any(fact["type"] == "run.finished" and fact["run_id"] == run_id for fact in list(self.facts))


class SocketReader:
    """A socket, read by a thread. Reconnecting continues after the last numbered event."""

    def __init__(
        self, service: Service, token: str, conversation: str, after_seq: int = 0, **options: Any
    ) -> None:
        self.service, self.token, self.conversation = service, token, conversation
        self.options = options
        self.story = Story()
        self.story.last_seq = after_seq
        self.close_code: int | None = None
        self.close_reason = ""
        self.failure: BaseException | None = None
        self._asked_at = 0.0
        self._opened = ExitStack()
        self._socket: ClientConnection
        self.connect()

    def connect(self) -> None:
        headers = {"Authorization": f"Bearer {self.token}"}
        self.close_code = None
        opening = connect(self.service.ws_url, additional_headers=headers, max_size=None, **self.options)
        self._socket = self._opened.enter_context(opening)
        self.tell(
            {"type": "subscribe", "conversation_id": self.conversation, "after_seq": self.story.last_seq}
        )
        threading.Thread(target=self._read, args=(self._socket,), daemon=True).start()

    def tell(self, frame: dict[str, Any]) -> None:
        self._socket.send(json.dumps(frame))

    def _read(self, socket: ClientConnection) -> None:
        try:
            for raw in socket:
                event = json.loads(raw)
                if event.get("conversation_id") not in (None, self.conversation):
                    continue
                if (message_id := self.story.take(event)) is not None:
                    self._ask_for_rest(message_id)
        except ConnectionClosed:
            pass
        except Exception as failure:
            self.failure = failure
        self.close_code, self.close_reason = socket.close_code, socket.close_reason or ""

    def _ask_for_rest(self, message_id: str) -> None:
        if time.monotonic() - self._asked_at > ASK_AGAIN_S:
            self._asked_at = time.monotonic()
            length = len(self.story.texts.get(message_id, ""))
            self.tell({"type": "message.sync", "message_id": message_id, "length": length})

    def wait_for(self, is_so: Any, what: str) -> Any:
        answer = wait_for(lambda: self.failure or is_so(self.story), what=what, explain=self.describe)
        if self.failure:
            raise self.failure
        return answer

    def wait_for_end(self, run_id: str) -> None:
        self.wait_for(lambda story: story.has_ended(run_id), f"run {run_id} ends")

    def wait_until_subscribed(self) -> None:
        """Wait until the subscription is active. A pong proves it, because frames are answered in order."""
        self.tell({"type": "ping"})
        self.wait_for(lambda story: any(each["type"] == "pong" for each in story.notices), "a pong")

    def wait_for_close(self) -> int:
        return wait_for(lambda: self.close_code, what="the socket closes") or 0

    def describe(self) -> str:
        return f"{self.story.types()} {self.story.notices} {self.story.texts} closed {self.close_code}"

    def close(self) -> None:
        self._opened.close()


class SseReader:
    """A stream of `GET …/events`, read by a thread. Reconnecting sends Last-Event-ID."""

    def __init__(self, service: Service, token: str, conversation: str, after_seq: int = 0) -> None:
        self.service, self.token, self.conversation = service, token, conversation
        self.story = Story()
        self.story.last_seq = after_seq
        self.failure: BaseException | None = None
        self.has_ended = False
        self._client: httpx2.Client
        self.connect()

    def connect(self) -> None:
        self._client = self.service.client(self.token)
        self.has_ended = False
        threading.Thread(target=self._read, args=(self._client,), daemon=True).start()

    def _read(self, client: httpx2.Client) -> None:
        headers = {"Last-Event-ID": str(self.story.last_seq)}
        path = f"/api/v1/conversations/{self.conversation}/events"
        try:
            with client.stream("GET", path, headers=headers) as answer:
                assert answer.status_code == 200, answer.status_code
                for event in parse_events(answer):
                    self.story.take(event)
        except httpx2.HTTPError:
            pass
        except Exception as failure:
            self.failure = failure
        self.has_ended = True

    def wait_for(self, is_so: Any, what: str) -> Any:
        def look() -> Any:
            return self.failure or is_so(self.story)

        answer = wait_for(look, what=what, explain=lambda: str(vars(self.story)))
        if self.failure:
            raise self.failure
        return answer

    def wait_for_end(self, run_id: str) -> None:
        self.wait_for(lambda story: story.has_ended(run_id), f"run {run_id} ends")

    def wait_for_close(self) -> None:
        wait_for(lambda: self.has_ended, what="the stream ends")

    def close(self) -> None:
        self._client.close()


def parse_events(answer: httpx2.Response) -> Iterator[dict[str, Any]]:
    for line in answer.iter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))
