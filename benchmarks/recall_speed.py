"""The time of indexing, recall and search, with histories that are repeated with some words replaced."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC
from typing import Any

import numpy as np

from benchmarks.recall_data import History
from benchmarks.stage import percentile

RECALLED_FROM = 20_000
SEARCHED = 100_000
BUDGETS = (2_000, 8_000)
RUNS = 60
MODEL = "chance"
DOCUMENTS_AT_ONCE = 1_024
VECTORS_EACH = 3
DIMENSIONS = 384
REPLACED = 0.2
"""Share of the words that are replaced in a repeated message, to get the large vocabulary of a long history."""


def measure(histories: Sequence[History]) -> None:
    questions = [asked.question for history in histories for asked in history.questions]
    for count in (RECALLED_FROM, SEARCHED):
        user, conversation_id = user_with(histories, count)
        started, cpu = time.perf_counter(), time.process_time()
        index(conversation_id)
        took, cpu = time.perf_counter() - started, time.process_time() - cpu
        print(f"Index of {count:,} turns: {took:.1f} s, {cpu:.1f} s of CPU")
        print(f"A turn is found after {_found_after_ms(user, conversation_id):.0f} ms, no worker running")
        _report_all(user, questions)
        _store_vectors(user, count)
        with _endpoint_of_chance():
            _report_all(user, questions, " with vectors")


def _report_all(user: Any, questions: Sequence[str], how: str = "") -> None:
    for budget in BUDGETS:
        _report(f"recall of {budget:,} tokens{how}", questions, recaller(user, budget))
    _report(f"search{how}", questions, _searcher(user))
    if not how:
        _report("search for one word", [text.split()[-1] for text in questions], _searcher(user))


def _store_vectors(user: Any, count: int) -> None:
    """Store random vectors, because the time of a search does not depend on their meaning."""
    from chatapp.recall.actions.vectors import DocumentVectors, begin_vectors, store_vectors

    dice = np.random.default_rng(count)
    while missing := begin_vectors(user_id=user.pk, model=MODEL)[:DOCUMENTS_AT_ONCE]:
        numbers = dice.normal(size=(len(missing), VECTORS_EACH, DIMENSIONS))
        documents = [DocumentVectors(at, rows) for at, rows in zip(missing, numbers, strict=True)]
        store_vectors(user_id=user.pk, model=MODEL, ordinals=missing, documents=documents)


@contextmanager
def _endpoint_of_chance() -> Iterator[None]:
    """Replace the embedding endpoint with immediate random vectors, so that only our own time is measured."""
    from django.conf import settings

    from chatapp.recall import embedding

    dice = np.random.default_rng(1)
    asked, embedding.embed_question = (
        embedding.embed_question,
        lambda _: dice.normal(size=DIMENSIONS).tolist(),
    )
    settings.EMBEDDINGS_MODEL = MODEL
    try:
        yield
    finally:
        settings.EMBEDDINGS_MODEL, embedding.embed_question = "", asked


def user_with(histories: Sequence[History], count: int) -> tuple[Any, Any]:
    from chatapp.accounts.models import User
    from chatapp.conversations.actions.imports import ImportedMessage, import_conversation
    from chatapp.operations import clock

    said = [message for history in histories for message in history.messages]
    words = sorted({word for message in said for word in message["content"].split()})
    dice = random.Random(count)
    rows = [
        ImportedMessage(message["role"], _changed(message["content"], words, dice))
        for number in range(count)
        for message in (said[number % len(said)],)
    ]
    user = User.objects.create_user(f"speed-{count}@example.com")
    return user, import_conversation(user=user, messages=rows, now=clock.now()).pk


def _changed(text: str, words: Sequence[str], dice: random.Random) -> str:
    first, *rest = text.split()
    return " ".join([first, *(dice.choice(words) if dice.random() < REPLACED else word for word in rest)])


def index(conversation_id: Any) -> None:
    from chatapp.recall.actions.indexing import index_conversation

    index_conversation(conversation_id)


def recaller(user: Any, budget: int) -> Callable[[str], object]:
    from chatapp.operations import clock
    from chatapp.recall.turn_recall import recall_for
    from memory.recall.ranking import RecallSize

    room = RecallSize(budget, 4 * budget)
    return lambda question: recall_for(user_id=user.pk, question=question, now=clock.now(), room=room)


def _searcher(user: Any) -> Callable[[str], object]:
    from chatapp.operations import clock
    from chatapp.recall.user_search import search_memory

    return lambda question: search_memory(
        user_id=user.pk, query=question, limit=20, now=clock.now(), zone=UTC
    )


def _found_after_ms(user: Any, conversation_id: Any) -> float:
    """Return the milliseconds from the commit of a message to the first search that finds it."""
    from chatapp.conversations.models import Conversation
    from tests.memory_store.rows import say

    say(Conversation.objects.get(pk=conversation_id), "The zeppelin lands at noon.")
    started = time.perf_counter()
    search = _searcher(user)
    while not search("zeppelin"):
        pass
    return (time.perf_counter() - started) * 1000


def _report(title: str, questions: Sequence[str], work: Callable[[str], object]) -> None:
    taken, cpu = [], []
    for question in random.Random(1).sample(list(questions), min(RUNS, len(questions))):
        started, used = time.perf_counter(), time.process_time()
        work(question)
        cpu.append((time.process_time() - used) * 1000)
        taken.append((time.perf_counter() - started) * 1000)
    print(f"  {title:34} CPU {_middle_and_most(cpu)}   on the clock {_middle_and_most(taken)}", flush=True)


def _middle_and_most(taken: Sequence[float]) -> str:
    return f"median {percentile(taken, 0.5):6.1f} ms, p95 {percentile(taken, 0.95):6.1f} ms"
