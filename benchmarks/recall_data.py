"""Conversations with questions and the messages that answer them, as the benchmarks of recall read them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Asked:
    """A question and the texts that hold its answer."""

    question: str
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class History:
    name: str
    messages: list[dict[str, Any]]
    questions: list[Asked]


def read_histories(path: Path) -> list[History]:
    conversations = json.loads(path.read_text())["conversations"]
    return [_history(item["id"], item["messages"], item["questions"]) for item in conversations]


def _history(name: str, messages: list[dict[str, Any]], questions: list[dict[str, Any]]) -> History:
    asked = [
        Asked(item["question"], tuple(messages[position]["content"] for position in item["evidence"]))
        for item in questions
    ]
    return History(name, messages, asked)


def chained(histories: Sequence[History]) -> History:
    """All of them as one conversation, one after the other, with everybody's questions."""
    messages = [message for history in histories for message in history.messages]
    return History("all in one", messages, [asked for history in histories for asked in history.questions])


def said_in(history: History) -> list[dict[str, Any]]:
    """As an import takes it."""
    return [
        {name: message[name] for name in ("role", "content", "created_at")} for message in history.messages
    ]
