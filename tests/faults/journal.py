"""The clients' record of what they sent and received, which the checker compares with the service."""

from __future__ import annotations

import re
import threading
from collections import Counter
from dataclasses import dataclass, field

from tests.faults.model_faults import SECRET, WORDS

TRACES = {
    "a stack": re.compile(r"Traceback|File \\?\"|, line \d+"),
    "a path": re.compile(r"(?<![\w.])/(?:tmp|root|home|usr|srv|work|var)/|\.py\b"),
    "SQL": re.compile(r"\b(?:SELECT|INSERT INTO|UPDATE|DELETE FROM) \S+ |chatapp_[a-z]+|palimpsest\.sqlite3"),
    "a library": re.compile(
        r"psycopg|sqlite3|OperationalError|InterfaceError|IntegrityError|aiohttp|httpx|redis\.exceptions|Errno \d"
    ),
    "the provider's words": re.compile(f"{re.escape(WORDS)}|{re.escape(SECRET)}|canary"),
}
SENTENCE = re.compile(r"[A-Z].{5,298}[.!]", re.DOTALL)


@dataclass
class Sent:
    """One message of a user. `run_id`, `message_id` and `answer_id` are known once it is acknowledged."""

    conversation: str
    key: str
    content: str
    run_id: str = ""
    message_id: str = ""
    answer_id: str = ""
    attempts: int = 0

    @property
    def is_acknowledged(self) -> bool:
        return bool(self.run_id)


@dataclass
class Journal:
    """The record of all users of one installation. Thread-safe."""

    sent: list[Sent] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    slowest_refusal_s: float = 0.0
    """The slowest refusal without a database: 10 s on an idle machine."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, sent: Sent) -> Sent:
        with self._lock:
            self.sent.append(sent)
        return sent

    def complain(self, problem: str) -> None:
        with self._lock:
            if problem not in self.problems:
                self.problems.append(problem)

    def count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1

    def scan(self, text: str, where: str) -> None:
        """Complain if a client received text that is not meant for clients."""
        for name, pattern in TRACES.items():
            if found := pattern.search(text):
                around = text[max(0, found.start() - 80) : found.end() + 80]
                self.complain(f"{where}: {name} reached a client: …{around}…")

    def check_sentence(self, text: object, where: str) -> None:
        """Complain if an error message is not a sentence."""
        if not isinstance(text, str) or not SENTENCE.fullmatch(text):
            self.complain(f"{where}: an error without a sentence: {text!r}")

    def note_refusal(self, seconds: float) -> None:
        with self._lock:
            self.slowest_refusal_s = max(self.slowest_refusal_s, seconds)
