"""Quality and speed of recall: the share of a question's evidence in the assembled context, compared with plain BM25.

python -m benchmarks.recall [FOLDER] [--database sqlite|postgres] [--embeddings URL MODEL] [--embeddings-hashed]
    [--skip-speed] [--skip-quality]

FOLDER contains the development data, which is not part of this project: long conversations in English, chats of people
with an assistant in Chinese and English, and probes in three languages. Our own probes in six other languages are with
the tests. A context's texts are counted at 4 characters per token, and a context over its budget scores nothing. All
questions except those of the first line are asked in a new conversation.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks import recall_gate, recall_letters, recall_speed
from benchmarks.recall_baselines import Bm25
from benchmarks.recall_data import (
    OWN_PROBES,
    Asked,
    History,
    chained,
    read_conversations,
    read_people,
    read_probes,
    said_in,
)
from benchmarks.stage import prepared_database

DATA = Path("../shared/data")
CONVERSATION_BUDGETS = (2_000, 4_000, 8_000)
PEOPLE_BUDGETS = (600, 1_200)
MEMORY_BUDGETS = (1_200, 2_400)
PROBE_BUDGETS = (1_200,)
ALLOWED_EXCESS = 1.05
CHARS_PER_TOKEN = 4

ContextOf = Callable[[str, int], list[str]]
"""The texts of the context for `(question, budget_tokens)`."""


@dataclass
class Score:
    """The score of one way to build contexts, at one budget."""

    shares: list[float] = field(default_factory=list)
    over_budget: int = 0

    def add(self, asked: Asked, texts: list[str], budget: int) -> None:
        is_over = sum(map(len, texts)) > budget * CHARS_PER_TOKEN * ALLOWED_EXCESS
        self.over_budget += is_over
        self.shares.append(0.0 if is_over else asked.share_in(texts))

    def __add__(self, other: Score) -> Score:
        return Score(self.shares + other.shares, self.over_budget + other.over_budget)

    def __str__(self) -> str:
        over = f" ({self.over_budget} over)" if self.over_budget else ""
        return f"{statistics.mean(self.shares) * 100:5.1f}{over}"


Row = list[Score]
"""One score per budget."""


def score_contexts(history: History, context_of: ContextOf, budgets: Sequence[int]) -> Row:
    row = []
    for budget in budgets:
        score = Score()
        for asked in history.questions:
            texts = context_of(asked.question, budget)
            score.add(asked, texts, budget)
        row.append(score)
    return row


def add_rows(rows: Sequence[Row]) -> Row:
    return [sum(scores, Score()) for scores in zip(*rows, strict=True)]


def report(title: str, ours: Row, plain: Row | None = None, note: str = "") -> None:
    beside = f"   BM25 {' '.join(map(str, plain))}" if plain else ""
    print(f"  {title:36} {' '.join(map(str, ours))}{beside}{note}", flush=True)


class Installation:
    """A separate database with one user per history."""

    def __init__(self) -> None:
        from chatapp.providers.actions import ensure_first_model

        ensure_first_model()
        self._users = 0

    def take_in(self, history: History) -> tuple[Any, str]:
        """Import and index a history. Return its user and the id of its conversation."""
        from chatapp.accounts.models import User
        from chatapp.conversations.actions.imports import import_conversation
        from chatapp.conversations.api.imports import read_messages
        from chatapp.operations import clock
        from chatapp.recall.actions.indexing import index_conversation
        from chatapp.recall.embedding import embed_index

        self._users += 1
        user = User.objects.create_user(f"user-{self._users}@example.com")
        messages = read_messages(said_in(history), clock.now())
        conversation = import_conversation(user=user, messages=messages, now=clock.now())
        index_conversation(conversation.pk)
        embed_index(user.pk)
        return user, str(conversation.pk)


def begin_another(user: Any) -> str:
    """Create an empty conversation of the user. Return its id."""
    from chatapp.conversations.actions.conversations import create_conversation
    from chatapp.operations import clock

    return str(create_conversation(user=user, now=clock.now()).pk)


def assembled(user: Any, conversation_id: str) -> ContextOf:
    """Return a function that returns the context as the inspector shows it."""
    from chatapp.context.inspector import inspect_context

    def texts(question: str, budget: int) -> list[str]:
        shown = inspect_context(
            user=user, conversation_id=conversation_id, query=question, budget_tokens=budget, model=None
        )
        return [message["content"] for message in shown["messages"]]

    return texts


@dataclass
class Measured:
    """An imported history, with its scores and those of plain BM25."""

    history: History
    user: Any
    ours: Row
    plain: Row


def measure_history(
    installation: Installation, history: History, budgets: Sequence[int], *, is_inside: bool = False
) -> Measured:
    user, conversation_id = installation.take_in(history)
    asked_in = conversation_id if is_inside else begin_another(user)
    return Measured(
        history,
        user,
        score_contexts(history, assembled(user, asked_in), budgets),
        score_contexts(history, Bm25(history).fill, budgets),
    )


def report_group(
    installation: Installation,
    histories: Sequence[History],
    budgets: Sequence[int],
    together_at: Sequence[int] = (),
) -> list[Measured]:
    """Print the scores of each history, all, all but one, and all in one memory. Return the measured histories."""
    print(f"{histories[0].language}, {len(histories)} histories at {_budgets(budgets)} tokens", flush=True)
    measured = [measure_history(installation, history, budgets) for history in histories]
    for each in measured:
        report(each.history.name, each.ours, each.plain)
    ours, plain = [each.ours for each in measured], [each.plain for each in measured]
    report("all", add_rows(ours), add_rows(plain))
    for left_out in range(len(measured) if len(measured) > 1 else 0):
        rest = add_rows([row for at, row in enumerate(ours) if at != left_out])
        report(f"without {histories[left_out].name}", rest)
    if together_at:
        whole = measure_history(installation, chained(histories), together_at)
        report(f"in one memory, at {_budgets(together_at)}", whole.ours, whole.plain)
    return measured


def _budgets(budgets: Sequence[int]) -> str:
    return " / ".join(f"{budget:,}" for budget in budgets)


def measure_quality(folder: Path) -> None:
    installation = Installation()
    print("Share of the evidence that is in the context, in %")
    conversations = read_conversations(folder / "recall_dev.json")
    inside = [
        measure_history(installation, history, CONVERSATION_BUDGETS, is_inside=True)
        for history in conversations
    ]
    report("en, asked in the conversation", add_rows([each.ours for each in inside]))
    measured = report_group(installation, conversations, CONVERSATION_BUDGETS, CONVERSATION_BUDGETS)
    people = sorted(read_people(folder / "memorybank_dev.json"), key=lambda person: person.language)
    for _, group in groupby(people, key=lambda person: person.language):
        measured += report_group(installation, list(group), PEOPLE_BUDGETS, MEMORY_BUDGETS)
    for probes in (*read_probes(folder / "probes_dev.json"), *read_probes(OWN_PROBES)):
        measured.append(measure_history(installation, probes, PROBE_BUDGETS))
        report(f"{probes.name} at {_budgets(PROBE_BUDGETS)}", measured[-1].ours, measured[-1].plain)
    recall_gate.measure([(each.history, each.user.pk) for each in measured])


@contextmanager
def _endpoint(arguments: argparse.Namespace) -> Iterator[dict[str, str]]:
    """Yield the settings of the requested embedding endpoint, or none for a search by words only."""
    names = ("EMBEDDINGS_BASE_URL", "EMBEDDINGS_MODEL", "EMBEDDINGS_API_KEY")
    if arguments.embeddings_hashed:
        with recall_letters.LetterEmbeddings() as server:
            yield dict(zip(names, (server.base_url, recall_letters.MODEL, "none"), strict=True))
    elif arguments.embeddings:
        key = os.environ.get("EMBEDDINGS_API_KEY", "")
        yield dict(zip(names, (*arguments.embeddings, key), strict=True))
    else:
        yield {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=DATA, help=f"default: {DATA}")
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument(
        "--embeddings",
        nargs=2,
        metavar=("URL", "MODEL"),
        help="fused with this endpoint's vectors; its key from EMBEDDINGS_API_KEY",
    )
    parser.add_argument(
        "--embeddings-hashed",
        action="store_true",
        help="the same with an endpoint of our own that knows no language",
    )
    parser.add_argument("--skip-speed", action="store_true")
    parser.add_argument("--skip-quality", action="store_true")
    arguments = parser.parse_args()
    if not arguments.folder.is_dir():
        return print(
            f"Not measured: the data is not part of this project, and {arguments.folder} is not there."
        )
    with _endpoint(arguments) as embeddings, prepared_database(arguments.database, embeddings):
        print(f"On {arguments.database}")
        if not arguments.skip_quality:
            measure_quality(arguments.folder)
        if not arguments.skip_speed:
            recall_speed.measure(read_conversations(arguments.folder / "recall_dev.json"))


if __name__ == "__main__":
    main()
