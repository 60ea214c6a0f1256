"""Recall in figures: the share of a question's evidence in the assembled context, beside two baselines.

python -m benchmarks.recall [DATA] [--database sqlite|postgres] [--over-rest] [--skip-speed]

DATA holds conversations with questions and the positions of the messages that answer them; it is not part of this
project. A context is counted at 4 characters a token over all its texts; one over its budget scores nothing.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "recall_dev.json"
BUDGETS = (2_000, 4_000, 8_000)
ALLOWED_EXCESS = 1.05
CHARS_PER_TOKEN = 4

ContextOf = Callable[[str, str, int], list[str]]
"""The texts of the context for `(conversation_id, question, budget_tokens)`."""


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


def joined(histories: Sequence[History]) -> History:
    """All of them as one conversation, in the order of time, with everybody's questions."""
    messages = [message for history in histories for message in history.messages]
    messages.sort(key=lambda message: message["created_at"])
    questions = [asked for history in histories for asked in history.questions]
    return History("all in one", messages, questions)


def chained(histories: Sequence[History]) -> History:
    """All of them as one conversation, one after the other."""
    messages = [message for history in histories for message in history.messages]
    return History("one by one", messages, [asked for history in histories for asked in history.questions])


@dataclass
class Score:
    """Of one way to make a context at one budget."""

    shares: list[float]
    fill: list[float]
    over_budget: int = 0

    def add(self, asked: Asked, texts: list[str], budget: int) -> None:
        tokens = sum(map(len, texts)) / CHARS_PER_TOKEN
        self.fill.append(tokens / budget)
        if tokens > budget * ALLOWED_EXCESS:
            self.over_budget += 1
            self.shares.append(0.0)
        else:
            held = sum(any(evidence in text for text in texts) for evidence in asked.evidence)
            self.shares.append(held / len(asked.evidence))

    def __str__(self) -> str:
        share, fill = statistics.mean(self.shares) * 100, statistics.mean(self.fill) * 100
        over = f", {self.over_budget} over budget" if self.over_budget else ""
        return f"{share:5.1f} % ({fill:3.0f} % full, at most {max(self.fill) * 100:3.0f} %{over})"


def measure_contexts(histories: Sequence[tuple[History, str]], context_of: ContextOf) -> list[Score]:
    """One score a budget, over the questions of all histories; each with the conversation they are asked in."""
    scores = []
    for budget in BUDGETS:
        score = Score([], [])
        for history, conversation_id in histories:
            for asked in history.questions:
                score.add(asked, context_of(conversation_id, asked.question, budget), budget)
        scores.append(score)
    return scores


def report(title: str, scores: Sequence[Score]) -> None:
    columns = "   ".join(f"{budget:,}: {score}" for budget, score in zip(BUDGETS, scores, strict=True))
    print(f"  {title:26} {columns}", flush=True)
