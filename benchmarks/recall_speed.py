"""How long indexing, a recall and a search take, with histories that are repeated with other words in between."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.stage import percentile

if TYPE_CHECKING:
    from benchmarks.recall import History

RECALLED_FROM = 20_000
SEARCHED = 100_000
RUNS = 60
REPLACED = 0.2
"""Share of the words of a repeated message that are others: a vocabulary as large as that of a long life."""


def measure(histories: Sequence[History]) -> None:
    questions = [asked.question for history in histories for asked in history.questions]
    user, conversation_id = _user_with(histories, RECALLED_FROM)
    started = time.perf_counter()
    _index(conversation_id)
    print(f"Index of {RECALLED_FROM:,} turns: {time.perf_counter() - started:.1f} s")
    for budget in (2_000, 8_000):
        _report(
            f"recall of {budget:,} tokens from {RECALLED_FROM:,} turns", questions, _recaller(user, budget)
        )
    print(f"A turn is found after {_found_after_ms(user, conversation_id):.0f} ms, no worker running")
    user, conversation_id = _user_with(histories, SEARCHED)
    _index(conversation_id)
    _report(f"search in {SEARCHED:,} turns", questions, _searcher(user))
    _report(f"one word in {SEARCHED:,} turns", [text.split()[-1] for text in questions], _searcher(user))


def _user_with(histories: Sequence[History], count: int) -> tuple[Any, Any]:
    from chatapp import clock
    from chatapp.actions.conversations import ImportedMessage, import_conversation
    from chatapp.models import User

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


def _index(conversation_id: Any) -> None:
    from chatapp.actions.search import index_conversation

    index_conversation(conversation_id)


def _recaller(user: Any, budget: int) -> Callable[[str], object]:
    from chatapp import clock
    from chatapp.recall import recall_for
    from memory.ranking import RecallSize

    room = RecallSize(budget, 4 * budget)
    return lambda question: recall_for(user_id=user.pk, question=question, now=clock.now(), room=room)


def _searcher(user: Any) -> Callable[[str], object]:
    from chatapp import clock
    from chatapp.recall import search_memory

    return lambda question: search_memory(user_id=user.pk, query=question, limit=20, now=clock.now())


def _found_after_ms(user: Any, conversation_id: Any) -> float:
    """From the commit of a message to the first search that finds it."""
    from chatapp.models import Conversation
    from tests.memory_store.rows import say

    say(Conversation.objects.get(pk=conversation_id), "The zeppelin lands at noon.")
    started = time.perf_counter()
    search = _searcher(user)
    while not search("zeppelin"):
        pass
    return (time.perf_counter() - started) * 1000


def _report(title: str, questions: Sequence[str], work: Callable[[str], object]) -> None:
    taken = []
    for question in random.Random(1).sample(list(questions), min(RUNS, len(questions))):
        started = time.perf_counter()
        work(question)
        taken.append((time.perf_counter() - started) * 1000)
    print(
        f"  {title:42} median {percentile(taken, 0.5):6.1f} ms   p95 {percentile(taken, 0.95):6.1f} ms",
        flush=True,
    )
