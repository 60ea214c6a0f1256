"""A model that chooses answers by a key in the question, so that no test gets the answers of another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Literal

from tests.servers.behaviour import Behaviour, says
from tests.servers.openai_server import ModelServer
from tests.servers.recording import RecordedRequest

Kind = Literal["chat", "summary"]
Step = Behaviour | Callable[[], Behaviour]
WINDOW, OUTPUT = 16_000, 2_000
_numbers = count(1)


def new_key(what: str) -> str:
    """Return a unique word. A question that contains it gets the answers scripted for it."""
    return f"{what}-{next(_numbers):04d}-key"


KEY = re.compile(r"\S+-\d{4}-key")


class Script:
    """Answers by key. After `answer(key, first, second)`, the first request with the key gets `first`, all later ones
    `second`. A function is called when its request arrives, before it is answered."""

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        self._answers: dict[tuple[str, str], list[Step]] = {}

    def answer(self, key: str, *behaviours: Step | str, kind: Kind = "chat") -> None:
        self._answers[kind, key] = [says(one) if isinstance(one, str) else one for one in behaviours]

    def requests(self, key: str, kind: Kind = "chat") -> list[RecordedRequest]:
        return [request for request in self.server.requests_of(kind) if self._key_of(request) == key]

    def wait_for_request(self, key: str, kind: Kind = "chat", count: int = 1, event: str = "arrived") -> None:
        def came(_: ModelServer) -> bool:
            return sum(event in request.times for request in self.requests(key, kind)) >= count

        self.server.wait_until(came)

    def behave(self, request: RecordedRequest) -> Behaviour:
        kind: Kind = "summary" if request.kind == "summary" else "chat"
        key = self._key_of(request)
        behaviours = self._answers.get((kind, key))
        if not behaviours:
            return says(f"A summary of {key}.") if kind == "summary" else says("An answer.")
        step = behaviours.pop(0) if len(behaviours) > 1 else behaviours[0]
        return step() if callable(step) else step

    @staticmethod
    def _key_of(request: RecordedRequest) -> str:
        """Return the key in the newest message that has one. Skip recalled text, which contains keys of other chats."""
        for message in reversed(request.user_messages):
            if found := KEY.findall(str(message["content"])):
                return str(found[-1])
        return ""


@contextmanager
def scripted_model() -> Iterator[Script]:
    with ModelServer(window=0) as server:
        script = Script(server)
        server.defaults = {"chat": script.behave, "summary": script.behave}
        yield script


def slowly(text: str, rate: float = 20.0) -> Behaviour:
    """Return an answer at `rate` words per second, so that no timeout for a silent model occurs."""
    return says(text, rate=rate)


def words(count: int, mark: str = "word") -> str:
    return " ".join(f"{mark}{number}" for number in range(count))
