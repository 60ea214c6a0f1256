"""Recall in figures: the share of a question's evidence in the assembled context, beside two baselines; and how fast.

python -m benchmarks.recall [DATA] [--database sqlite|postgres] [--embeddings URL MODEL] [--embeddings-hashed]
    [--over-rest] [--skip-speed] [--skip-quality]

DATA holds conversations with questions and the positions of the messages that answer them; it is not part of this
project. A context is counted at 4 characters a token over all its texts; one over its budget scores nothing.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import recall_baselines, recall_gate, recall_letters, recall_speed
from benchmarks.recall_data import Asked, History, chained, read_histories, said_in
from benchmarks.stage import model_server, prepared_database, running_service

DATA = Path("../shared/data/recall_dev.json")
BUDGETS = (2_000, 4_000, 8_000)
ALLOWED_EXCESS = 1.05
CHARS_PER_TOKEN = 4

ContextOf = Callable[[str, str, int], list[str]]
"""The texts of the context for `(conversation_id, question, budget_tokens)`."""


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
    print(f"  {title:30} {columns}", flush=True)


class Installation:
    """A database of its own with one user per history."""

    def __init__(self) -> None:
        from chatapp.providers.actions import ensure_first_model

        ensure_first_model()
        self._users: dict[str, Any] = {}

    def take_in(self, history: History) -> str:
        """The id of the conversation it became, all of it indexed."""
        from chatapp.accounts.models import User
        from chatapp.conversations.actions.imports import import_conversation
        from chatapp.conversations.api.imports import read_messages
        from chatapp.operations import clock
        from chatapp.recall.actions.indexing import index_conversation
        from chatapp.recall.embedding import embed_index

        user = User.objects.create_user(f"{history.name.replace(' ', '-')}@example.com")
        conversation = import_conversation(
            user=user, messages=read_messages(said_in(history)), now=clock.now()
        )
        index_conversation(conversation.pk)
        embed_index(user.pk)
        self._users[str(conversation.pk)] = user
        return str(conversation.pk)

    def begin_another(self, conversation_id: str) -> str:
        """The id of an empty conversation of the same user."""
        from chatapp.conversations.actions.conversations import create_conversation
        from chatapp.operations import clock

        user = self._users[conversation_id]
        fresh = str(create_conversation(user=user, now=clock.now()).pk)
        self._users[fresh] = user
        return fresh

    def user_of(self, conversation_id: str) -> Any:
        return self._users[conversation_id]

    def assembled(self, conversation_id: str, question: str, budget: int) -> list[str]:
        """What the inspector shows: the context the model would be sent."""
        from chatapp.context.inspector import inspect_context

        shown = inspect_context(
            user=self._users[conversation_id],
            conversation_id=conversation_id,
            query=question,
            budget_tokens=budget,
            model=None,
        )
        return [message["content"] for message in shown["messages"]]


def measure_quality(histories: Sequence[History]) -> None:
    installation = Installation()
    alone = [(history, installation.take_in(history)) for history in histories]
    elsewhere = [(history, installation.begin_another(taken)) for history, taken in alone]
    whole = chained(histories)
    in_one = [(whole, installation.take_in(whole))]
    print("Share of the evidence in the context")
    report("assembled", measure_contexts(alone, installation.assembled))
    report("assembled, new conversation", measure_contexts(elsewhere, installation.assembled))
    report("assembled, all in one history", measure_contexts(in_one, installation.assembled))
    report("keep the latest", measure_contexts(alone, recall_baselines.latest))
    report("the database's full text", measure_contexts(alone, recall_baselines.FullText()))
    print("The gate")
    for history, conversation_id in alone:
        own = [asked.question for asked in history.questions]
        recall_gate.measure(history.name, installation.user_of(conversation_id).pk, own)


def measure_over_rest(histories: Sequence[History]) -> None:
    """The same through the door, with the answers of a running service."""
    with model_server() as model, running_service(model.url, people=1) as (service, [(token, _)]):
        client = service.client(token)

        def take_in(history: History) -> str:
            body = {
                "messages": [
                    {name: m[name] for name in ("role", "content", "created_at")} for m in history.messages
                ]
            }
            answer = client.post("/api/v1/conversations/import", json=body, timeout=120)
            taken: str = answer.raise_for_status().json()["id"]
            return taken

        def assembled(conversation_id: str, question: str, budget: int) -> list[str]:
            asked = {"query": question, "budget_tokens": budget}
            answer = client.post(f"/api/v1/conversations/{conversation_id}/context", json=asked, timeout=60)
            return [message["content"] for message in answer.raise_for_status().json()["messages"]]

        alone = [(history, take_in(history)) for history in histories]
        print("Share of the evidence in the context, over REST, one user with all histories")
        report("assembled", measure_contexts(alone, assembled))


@contextmanager
def _endpoint(arguments: argparse.Namespace) -> Iterator[dict[str, str]]:
    """The settings of the endpoint that was asked for; none for words alone."""
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
    parser.add_argument("data", nargs="?", type=Path, help=f"default: {DATA}, where it is there")
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument(
        "--embeddings",
        nargs=2,
        metavar=("URL", "MODEL"),
        help="fused with this endpoint's vectors; its key from EMBEDDINGS_API_KEY; not with --over-rest",
    )
    parser.add_argument(
        "--embeddings-hashed",
        action="store_true",
        help="the same with an endpoint of our own that knows no language",
    )
    parser.add_argument("--over-rest", action="store_true", help="through a running service, on SQLite")
    parser.add_argument("--skip-speed", action="store_true")
    parser.add_argument("--skip-quality", action="store_true")
    arguments = parser.parse_args()
    if arguments.data is None and not DATA.is_file():
        return print(f"Not measured: the questions are not part of this project, and {DATA} is not there.")
    histories = read_histories(arguments.data or DATA)
    if arguments.over_rest:
        return measure_over_rest(histories)
    with _endpoint(arguments) as embeddings, prepared_database(arguments.database, embeddings):
        print(f"On {arguments.database}: {sum(len(history.questions) for history in histories)} questions")
        if not arguments.skip_quality:
            measure_quality(histories)
        if not arguments.skip_speed:
            recall_speed.measure(histories)


if __name__ == "__main__":
    main()
