from __future__ import annotations

from memory.budget import TokenBudget
from memory.checkpoints import Candidate, choose_checkpoint
from memory.compaction import plan_compaction
from memory.policy import DEFAULT_POLICY
from memory.tokens import total_tokens
from memory.types import Checkpoint, Message
from tests.memory.histories import plain_turns
from tests.memory.views import fit

LARGE, SMALL = TokenBudget(128_000, 64_000), TokenBudget(8_000, 1_000, 500)


def candidates(history: list[Message], checkpoints: list[Checkpoint]) -> list[Candidate]:
    lasts = [-1, *(each.last_position for each in checkpoints)]
    return [
        Candidate(checkpoint, total_tokens(history[last + 1 :]))
        for checkpoint, last in zip([None, *checkpoints], lasts, strict=True)
    ]


def choose(history: list[Message], checkpoints: list[Checkpoint], budget: TokenBudget) -> Checkpoint | None:
    return choose_checkpoint(
        candidates(history, checkpoints), DEFAULT_POLICY, budget, question_tokens=20, system_tokens=20
    )


def test_without_a_checkpoint_the_view_starts_at_the_beginning() -> None:
    assert choose(plain_turns(5), [], LARGE) is None
    assert choose_checkpoint([], DEFAULT_POLICY, LARGE, question_tokens=1, system_tokens=1) is None


def test_a_prepared_summary_takes_effect_when_the_trigger_is_passed_and_then_for_good() -> None:
    """It was prepared at the soft trigger; until the hard one the history itself is sent."""
    history = plain_turns(200)
    checkpoint: Checkpoint | None = None
    chosen: list[bool] = []
    for at in range(2, len(history), 2):
        due = None if checkpoint else plan_compaction(history[:at], None, DEFAULT_POLICY, SMALL)
        if due:
            checkpoint = Checkpoint("c", "They talked.", due.last_position, due.message_count, 4)
        if checkpoint and at - checkpoint.last_position < 60:
            chosen.append(choose(history[:at], [checkpoint], SMALL) is checkpoint)
    assert chosen == sorted(chosen)
    assert not chosen[0]
    assert chosen[-1]


def test_a_switch_to_a_small_window_and_back_shows_the_same_bytes_as_before() -> None:
    history = plain_turns(100)
    before = fit(history, budget=LARGE)
    due = plan_compaction(history, None, DEFAULT_POLICY, SMALL)
    assert due is not None
    made_small = Checkpoint("c", "They talked.", due.last_position, due.message_count, 4)
    assert choose(history, [made_small], SMALL) is made_small
    assert choose(history, [made_small], LARGE) is None
    assert fit(history, budget=LARGE) == before
