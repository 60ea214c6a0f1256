"""What the model server does to an answer, and how the answer may end. Each question names its fault."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from tests.servers.behaviour import ERRORS, Behaviour, fails, says
from tests.servers.recording import RecordedRequest

SECRET = "sk-canary-0123456789abcdef"
WORDS = "canary words of the provider"
"""Every refusal contains both, and neither may reach a client."""
RATE = 40.0
NAMED_WINDOW = 9_000
NO_DATE = "Mon, 01 Jan 2024 00:00:00 +99999999999999"

Step = Behaviour | Callable[[str], Behaviour]
"""The response to one request. A function gets the requested text."""


@dataclass(frozen=True)
class ModelFault:
    """`steps` are the responses to the first, second … request of a question. The last one is repeated.

    `statuses` are the possible ends of the answer if nothing else goes wrong, `category` is that of its error.
    """

    steps: tuple[Step, ...]
    statuses: tuple[str, ...] = ("complete",)
    category: str = ""


def refuses(status: int, **more: str) -> Behaviour:
    return fails(status, f"{WORDS}: {SECRET} at /srv/model/server.py", **more)


def well(text: str) -> Behaviour:
    return says(text, rate=RATE)


def broken(**more: object) -> Callable[[str], Behaviour]:
    return lambda text: replace(says(text, rate=RATE), **more)  # type: ignore[arg-type]


def at_a_date(_: str) -> Behaviour:
    when = datetime.now(UTC) + timedelta(seconds=2)
    return refuses(429, retry_after=format_datetime(when, usegmt=True))


def names_window(_: str) -> Behaviour:
    return fails(
        400,
        f"This model's maximum context length is {NAMED_WINDOW} tokens. However, your messages resulted in 9001 tokens.",
        code="context_length_exceeded",
    )


MODEL_FAULTS: dict[str, ModelFault] = {
    "none": ModelFault((well,)),
    "two-lines": ModelFault((broken(fault="two_lines"),)),
    "wrong-usage": ModelFault((broken(usage={"prompt_tokens": -5, "completion_tokens": 10**15}),)),
    "odd-usage": ModelFault((broken(usage=["many"]),)),
    "vast-usage": ModelFault((broken(usage={"prompt_tokens": 10**400, "completion_tokens": 10**400}),)),
    "429-seconds": ModelFault((refuses(429, retry_after="1"), well)),
    "429-date": ModelFault((at_a_date, well)),
    "429-no-date": ModelFault((refuses(429, retry_after=NO_DATE), well)),
    "500-once": ModelFault((refuses(500), well)),
    "503-twice": ModelFault((refuses(503), refuses(503), well)),
    "529-twice": ModelFault((refuses(529), refuses(529), well)),
    "refused-once": ModelFault((Behaviour(fault="refuse"), well)),
    "silent-once": ModelFault((broken(hold_after=0), well)),
    "window-named": ModelFault((names_window, well), ("complete", "failed"), "overflow"),
    "length": ModelFault((broken(finish_reason="length"),), ("cut",), "length"),
    "filter": ModelFault((broken(finish_reason="content_filter"),), ("cut",), "content_filter"),
    "unknown-reason": ModelFault((broken(finish_reason="cosmic_rays"),), ("cut",), "unknown_reason"),
    "lost-event": ModelFault((broken(fault="lost_event"),), ("cut",), "lost"),
    "endless": ModelFault((broken(is_endless=True, rate=0.0),), ("cut",), "bound"),
    "refused": ModelFault((Behaviour(fault="refuse"),), ("failed",), "connection"),
    "wrong-key": ModelFault((refuses(401),), ("failed",), "auth"),
    "429-long": ModelFault((refuses(429, retry_after="600"),), ("failed",), "rate_limit"),
    "500": ModelFault((refuses(500),), ("failed",), "server"),
    "503": ModelFault((refuses(503),), ("failed",), "server"),
    "529": ModelFault((refuses(529),), ("failed",), "server"),
    "html": ModelFault((Behaviour(fault="html"),), ("failed",), "bad_response"),
    "empty": ModelFault((Behaviour(fault="empty"),), ("failed",), "bad_response"),
    "silent": ModelFault((broken(hold_after=0),), ("failed",), "timeout"),
    "stall": ModelFault((broken(hold_after=3),), ("failed",), "stalled"),
    "broken-json": ModelFault((broken(fault="broken_json"),), ("failed",), "cut"),
    "cut": ModelFault((broken(fault="cut"),), ("failed",), "cut"),
    "no-finish": ModelFault((broken(fault="no_finish"),), ("failed",), "cut"),
    "error-inside": ModelFault(
        (broken(fault="error_chunk", error={"error": {"message": WORDS, "code": 500}}),),
        ("failed",),
        "server",
    ),
    "too-large": ModelFault((ERRORS["overflow_openai"](),), ("failed",), "overflow"),
}

QUESTION = re.compile(r"(\S+-\d{5}-key) fault:(\S+) words:(\d+)")


def question(key: str, fault: str, count: int) -> str:
    return f"{key} fault:{fault} words:{count}"


def answer_to(asked: str) -> str:
    """Return the complete answer that a question requests. Every key has a different one."""
    found = QUESTION.search(asked)
    assert found, asked
    return " ".join(f"{found[1]}.{number}" for number in range(int(found[3])))


def fault_of(asked: str) -> str:
    found = QUESTION.search(asked)
    assert found, asked
    return found[2]


class FaultyModel:
    """Answers every question in the way that it requests. `behave` is the default of a `ModelServer`."""

    def __init__(self) -> None:
        self._asked: dict[str, int] = defaultdict(int)

    def behave(self, request: RecordedRequest) -> Behaviour:
        for message in reversed(request.user_messages):
            if found := QUESTION.findall(str(message["content"])):
                return self._step(*found[-1])
        return says("An answer to nothing in particular.")

    def _step(self, key: str, fault: str, count: str) -> Behaviour:
        steps = MODEL_FAULTS[fault].steps
        step = steps[min(self._asked[key], len(steps) - 1)]
        self._asked[key] += 1
        return step(answer_to(question(key, fault, int(count)))) if callable(step) else step
