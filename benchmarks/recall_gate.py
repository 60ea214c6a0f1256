"""The gate's two errors, by language: own questions that recall little or nothing, and unrelated messages that recall
something."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from benchmarks.recall_data import History, read_unrelated

ROOM_TOKENS = 2_000
LITTLE_TOKENS = 500
"""An unrelated question may recall up to this many tokens."""
COLUMNS = (
    "own: nothing",
    "own: little",
    "own: asked",
    "foreign: much",
    "foreign: something",
    "foreign: asked",
    "small talk: something",
    "small talk: asked",
)


def measure(histories: Sequence[tuple[History, Any]]) -> None:
    """Print how much own, foreign and small-talk questions recall. Each history comes with its user's primary key."""
    unrelated = read_unrelated()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for history, user_id in histories:
        told = counts[history.language]
        for asked in history.questions:
            _count(told, "own", _recalled_tokens(user_id, asked.question))
        for question in unrelated[history.language].foreign:
            _count(told, "foreign", _recalled_tokens(user_id, question))
    anybody = histories[0][1]
    for language, item in unrelated.items():
        owners = [user_id for history, user_id in histories if history.language == language] or [anybody]
        for text in item.small:
            for user_id in owners:
                _count(counts[language], "small talk", _recalled_tokens(user_id, text))
    print(f"The gate, with room for {ROOM_TOKENS:,} tokens; little is less than {LITTLE_TOKENS}")
    for language, told in counts.items():
        print(f"  {language}  " + ", ".join(f"{name} {told[name]}" for name in COLUMNS), flush=True)


def _count(told: Counter[str], what: str, tokens: int) -> None:
    told[f"{what}: asked"] += 1
    told[f"{what}: nothing"] += tokens == 0
    told[f"{what}: something"] += tokens > 0
    told[f"{what}: little"] += 0 < tokens <= LITTLE_TOKENS
    told[f"{what}: much"] += tokens > LITTLE_TOKENS


def _recalled_tokens(user_id: Any, question: str) -> int:
    from chatapp.operations import clock
    from chatapp.recall.turn_recall import recall_for
    from memory.recall.ranking import RecallSize

    room = RecallSize(ROOM_TOKENS, 4 * ROOM_TOKENS)
    return sum(
        turn.tokens for turn in recall_for(user_id=user_id, question=question, now=clock.now(), room=room)
    )
