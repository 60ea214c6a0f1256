"""A user who keeps chatting during outages: sends each message until it is acknowledged, then waits for the end."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import count
from typing import Any

import httpx2
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from tests.faults.journal import Journal, Sent
from tests.faults.model_faults import question
from tests.faults.watching import Watcher
from tests.reliability.installation import Installation
from tests.reliability.people import ASYNC, ENDED
from tests.reliability.readers import parse_events
from tests.servers.service import NO_CERTIFICATES

PAUSE_S = 0.3
ATTEMPTS = 400
"""Attempts per message, with a pause after each. Together they last longer than any outage."""
REQUEST_TIMEOUT_S = 60.0
_numbers = count(1)


class User(threading.Thread):
    """A chatting user. `faults` yields the model fault of each question."""

    def __init__(
        self,
        installation: Installation,
        person: str,
        journal: Journal,
        faults: Iterable[str],
        words: int,
        seed: int = 0,
    ) -> None:
        super().__init__(name=person, daemon=True)
        self.installation, self.person, self.journal = installation, person, journal
        self.faults, self.words = faults, words
        self.random = random.Random(seed)
        self.wants_to_stop = threading.Event()
        self.conversations: list[str] = []
        self.watcher = Watcher(installation, person, journal)
        self._doors: tuple[Callable[[Sent, str], bool], ...] = (
            self._post, self._wait, self._stream, self._send_frame,
        )  # fmt: skip

    def run(self) -> None:
        try:
            for turn, fault in enumerate(self.faults):
                if self.wants_to_stop.is_set():
                    return
                self._ask(turn, fault)
        except Exception as error:
            self.journal.complain(f"{self.person} gave up: {type(error).__name__}: {str(error)[:500]}")

    def _ask(self, turn: int, fault: str) -> None:
        if len(self.conversations) < 2:
            self._open_conversation()
        conversation = self.conversations[turn % len(self.conversations)]
        key = f"u-{next(_numbers):05d}-key"
        sent = self.journal.add(Sent(conversation, key, question(key, fault, self.words)))
        door = self._doors[turn % len(self._doors)]
        while not sent.is_acknowledged:
            sent.attempts += 1
            if sent.attempts > ATTEMPTS:
                raise TimeoutError(f"{key} was never accepted")
            url = self.random.choice(self.installation.webs).url
            try:
                if door(sent, url):
                    break
            except (httpx2.HTTPError, OSError, WebSocketException) as lost:
                self.journal.count(f"connection lost: {type(lost).__name__}")
            # Retry with the same key over a plain POST: the message is stored once, even if it was accepted before.
            door = self._post
            time.sleep(PAUSE_S)
        self.journal.count(f"accepted after {min(sent.attempts, 5)}")
        self._wait_for_end(sent)

    # --- ways to send: each returns whether the message was acknowledged

    def _post(self, sent: Sent, url: str) -> bool:
        answer = self._call("POST", url, self._path(sent), self._body(sent), ASYNC)
        if answer.status_code == 202:
            self._note(sent, answer.json())
        return self._has_passed(sent, answer)

    def _wait(self, sent: Sent, url: str) -> bool:
        answer = self._call("POST", url, self._path(sent), {**self._body(sent), "stream": False})
        if answer.status_code == 200:
            body = answer.json()
            self._note(sent, {"run_id": body["run_id"], "answer_id": body["message"]["id"]})
        return self._has_passed(sent, answer)

    def _stream(self, sent: Sent, url: str) -> bool:
        """Send with a stream and record the run's ids from the first events, because the connection may be lost at any
        time."""
        with (
            self._client(url) as client,
            client.stream("POST", self._path(sent), json={**self._body(sent), "stream": True}) as answer,
        ):
            if answer.status_code != 200:
                answer.read()
                return self._has_passed(sent, answer)
            for event in parse_events(answer):
                self.journal.scan(json.dumps(event), "an event of a stream")
                if event.get("run_id") and not sent.is_acknowledged and event["type"] == "run.started":
                    self._note(sent, {"run_id": event["run_id"], "answer_id": event["message_id"]})
        return sent.is_acknowledged

    def _send_frame(self, sent: Sent, url: str) -> bool:
        headers = {"Authorization": f"Bearer {self.installation.tokens[self.person]}"}
        frame = {"type": "message.send", "client_id": sent.key, "conversation_id": sent.conversation}
        address = url.replace("http", "ws", 1) + "/ws/chat"
        with connect(address, additional_headers=headers, open_timeout=20, max_size=None) as socket:
            socket.send(json.dumps({**frame, "content": sent.content}))
            while True:
                raw = socket.recv(timeout=REQUEST_TIMEOUT_S)
                self.journal.scan(str(raw), "a frame of a socket")
                event = json.loads(raw)
                if event["type"] == "error":
                    self.journal.check_sentence(event.get("message"), "a frame of a socket")
                    self.journal.count(f"frame refused: {event.get('code')}")
                    return False
                if event["type"] == "ack":
                    self._note(sent, event)
                    return True

    # --- shared by all ways to send

    def _open_conversation(self) -> None:
        for _ in range(ATTEMPTS):
            url = self.random.choice(self.installation.webs).url
            with suppress(httpx2.HTTPError, OSError):
                answer = self._call("POST", url, "/api/v1/conversations", {})
                if answer.status_code == 201:
                    self.conversations.append(answer.json()["id"])
                    self.watcher.watch(self.conversations[-1])
                    return
            time.sleep(PAUSE_S)
        raise TimeoutError("No conversation could be made.")

    def _path(self, sent: Sent) -> str:
        return f"/api/v1/conversations/{sent.conversation}/messages"

    def _body(self, sent: Sent) -> dict[str, Any]:
        return {"content": sent.content, "client_id": sent.key}

    def _client(self, url: str) -> httpx2.Client:
        headers = {"Authorization": f"Bearer {self.installation.tokens[self.person]}"}
        return httpx2.Client(base_url=url, headers=headers, timeout=REQUEST_TIMEOUT_S, verify=NO_CERTIFICATES)

    def _call(
        self, method: str, url: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> httpx2.Response:
        began = time.monotonic()
        with self._client(url) as client:
            answer = client.request(method, path, json=body, headers=headers)
        self.journal.scan(answer.text, f"{method} {path.rpartition('/')[2]} {answer.status_code}")
        if answer.status_code >= 400:
            self._check_refusal(answer, f"{method} {path}", time.monotonic() - began)
        return answer

    def _check_refusal(self, answer: httpx2.Response, where: str, seconds: float) -> None:
        try:
            error = answer.json()["error"]
        except (ValueError, KeyError, TypeError):
            self.journal.complain(f"{where}: {answer.status_code} without an error: {answer.text[:300]}")
            return
        self.journal.check_sentence(error.get("message"), f"{where} {answer.status_code}")
        self.journal.count(f"refused: {answer.status_code} {error.get('code')}")
        if answer.status_code == 500:
            self.journal.complain(f"{where}: 500 {error}")
        if error.get("code") == "unavailable":
            self.journal.note_refusal(seconds)

    def _has_passed(self, sent: Sent, answer: httpx2.Response) -> bool:
        """Return whether the message is acknowledged, possibly by an error that contains the failed run."""
        if answer.status_code >= 500 and not sent.is_acknowledged:
            details = answer.json()["error"].get("details") or {}
            if details.get("run_id"):
                self._note(sent, {**details, "answer_id": (details.get("message") or {}).get("id", "")})
        elif answer.status_code in (404, 413, 422):
            raise AssertionError(f"{sent.key} was refused: {answer.status_code} {answer.text[:300]}")
        return sent.is_acknowledged

    def _note(self, sent: Sent, told: dict[str, Any]) -> None:
        sent.run_id = told["run_id"]
        sent.message_id = sent.message_id or told.get("message_id") or ""
        sent.answer_id = sent.answer_id or told.get("answer_id") or ""

    def _wait_for_end(self, sent: Sent) -> None:
        for _ in range(ATTEMPTS):
            url = self.random.choice(self.installation.webs).url
            with suppress(httpx2.HTTPError, OSError):
                answer = self._call("GET", url, f"/api/v1/runs/{sent.run_id}")
                if answer.status_code == 200 and answer.json()["status"] in ENDED:
                    return
                if answer.status_code == 404:
                    raise AssertionError(f"the run of {sent.key} is gone")
            time.sleep(PAUSE_S)
        self.journal.complain(f"{sent.key}: run {sent.run_id} never ended")
