"""Reads histories with questions and the messages that answer them, for the recall benchmarks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

OWN_PROBES = Path(__file__).parent.parent / "tests/benchmarks/recall_probes.json"
LANGUAGE_CODES = {"Japanese": "ja", "German": "de", "Russian": "ru", "cn": "zh"}
"""Codes for the language names in the data that are not codes."""


@dataclass(frozen=True)
class Asked:
    """A question and the texts that contain its answer. Any of the alternatives in `evidence` suffices."""

    question: str
    evidence: tuple[tuple[str, ...], ...]
    kind: str = ""

    def share_in(self, texts: Sequence[str]) -> float:
        """Return the share of the evidence that is verbatim in the texts, for the best alternative."""
        return max(
            sum(any(one in text for text in texts) for one in each) / len(each) for each in self.evidence
        )


@dataclass(frozen=True)
class History:
    name: str
    language: str
    messages: list[dict[str, Any]]
    questions: list[Asked] = field(repr=False)


def read_conversations(path: Path) -> list[History]:
    """Read long conversations in English."""
    return [
        History(item["id"], "en", item["messages"], list(_asked_by_position(item)))
        for item in json.loads(path.read_text())["conversations"]
    ]


def _asked_by_position(item: dict[str, Any]) -> Iterator[Asked]:
    for asked in item["questions"]:
        texts = tuple(item["messages"][position]["content"] for position in asked["evidence"])
        yield Asked(asked["question"], (texts,), asked["category"])


def read_people(path: Path) -> list[History]:
    """Read chats of people with an assistant over ten days."""
    histories = []
    for person in json.loads(path.read_text())["people"]:
        language = LANGUAGE_CODES.get(person["language"], person["language"])
        questions = [_asked_by_day(person, asked) for asked in person["questions"]]
        said = [
            turn
            for day, pairs in person["history"].items()
            for turn in _turns(day, [(pair["query"], pair["response"]) for pair in pairs])
        ]
        histories.append(History(person["name"], language, said, questions))
    return histories


def _asked_by_day(person: dict[str, Any], asked: dict[str, Any]) -> Asked:
    def texts(evidence: list[Any]) -> tuple[str, ...]:
        fields = {"q": "query", "r": "response"}
        return tuple(person["history"][day][pair][fields[who]] for day, pair, who in evidence)

    evidence = (texts(asked["evidence"]), *map(texts, asked.get("alternatives", ())))
    return Asked(asked["question"], evidence, asked["kind"])


def _turns(day: str, pairs: Sequence[tuple[str, str]], first_minute: int = 0) -> Iterator[dict[str, Any]]:
    begin = datetime.fromisoformat(f"{day}T10:00:00").replace(tzinfo=UTC)
    for number, pair in enumerate(pairs):
        for offset, (role, text) in enumerate(zip(("user", "assistant"), pair, strict=True)):
            at = begin + timedelta(minutes=first_minute + 2 * number + offset)
            yield {"role": role, "content": text, "created_at": at.isoformat()}


def read_probes(path: Path) -> list[History]:
    """Read one short history in several languages."""
    data = json.loads(path.read_text())
    histories = []
    for name, item in data["languages"].items():
        pairs = list(zip(item["turns"][::2], item["turns"][1::2], strict=True))
        said = [
            turn
            for number, (day, pair) in enumerate(zip(data["days"], pairs, strict=True))
            for turn in _turns(day, [pair], 2 * number)
        ]
        questions = [
            Asked(question, ((item["turns"][answer],),))
            for question, answer in zip(item["questions"], data["answers"], strict=True)
        ]
        language = LANGUAGE_CODES.get(name, name)
        histories.append(History(f"probes {language}", language, said, questions))
    return histories


@dataclass(frozen=True)
class Unrelated:
    """Messages that are unrelated to any history."""

    foreign: list[str]
    small: list[str]
    """Small talk and plain commands."""


def read_unrelated(path: Path = OWN_PROBES) -> dict[str, Unrelated]:
    """Read the unrelated messages for the gate, by language."""
    data = json.loads(path.read_text())
    items = {**data["languages"], **data["gate"]}
    return {
        language: Unrelated(item["foreign"], [*item["small_talk"], *item["commands"]])
        for language, item in items.items()
    }


def chained(histories: Sequence[History]) -> History:
    """Join histories into one conversation, one after another, with all their questions."""
    messages = [message for history in histories for message in history.messages]
    questions = [asked for history in histories for asked in history.questions]
    return History("all in one", histories[0].language, messages, questions)


def said_in(history: History) -> list[dict[str, Any]]:
    """Return the messages in the format of an import."""
    return [
        {name: message[name] for name in ("role", "content", "created_at")} for message in history.messages
    ]
