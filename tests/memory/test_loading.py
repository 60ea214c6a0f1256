"""The position from which a conversation is loaded if a request cannot hold all of it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.window.loading import STEP_SHARE, LoadLimits, StoredSize, choose_start, sample_positions

LIMITS = LoadLimits(window=8_000, uncut=6_000, tail=800, keep_recent=10)
roles = st.sampled_from(("user", "user", "assistant", "assistant", "tool"))
stored = st.lists(st.tuples(roles, st.integers(5, 900)), min_size=1, max_size=120)


def sizes(said: list[tuple[str, int]], first: int = 0) -> list[StoredSize]:
    """Return the sizes of the messages, newest first."""
    return [StoredSize(first + at, tokens, role, "message") for at, (role, tokens) in enumerate(said)][::-1]


@settings(max_examples=200, deadline=None)
@given(stored, st.integers(0, 10_000))
def test_the_tail_and_little_more_is_loaded(said: list[tuple[str, int]], first: int) -> None:
    newest_first = sizes(said, first)
    start = choose_start(newest_first, LIMITS)
    kept = [size for size in newest_first if size.position >= start]
    assert len(kept) >= min(LIMITS.keep_recent, len(said))
    assert sum(size.tokens for size in kept) >= min(LIMITS.tail, sum(tokens for _, tokens in said))
    least = [size for at, size in enumerate(newest_first) if at < LIMITS.keep_recent]
    most = max(sum(size.tokens for size in least) + 900, LIMITS.tail + LIMITS.window // STEP_SHARE + 900)
    assert sum(size.tokens for size in kept) <= most


@settings(max_examples=100, deadline=None)
@given(stored)
def test_loading_starts_at_a_turn_if_one_is_in_reach_and_otherwise_not_at_a_result(
    said: list[tuple[str, int]],
) -> None:
    newest_first = sizes(said)
    sums = list(itertools.accumulate(size.tokens for size in newest_first))
    reach = [
        size
        for size, used, count in zip(newest_first, sums, itertools.count(1), strict=False)
        if used >= LIMITS.tail
        and count >= LIMITS.keep_recent
        and used <= LIMITS.tail + LIMITS.window // STEP_SHARE
    ]
    begun = next(size for size in newest_first if size.position == choose_start(newest_first, LIMITS))
    if any(size.starts_turn for size in reach):
        assert begun.starts_turn
    elif any(size.role != "tool" for size in reach):
        assert begun.role != "tool"


@pytest.mark.mechanism("fim.load")
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 5_000), st.lists(st.integers(20, 80), min_size=200, max_size=200))
def test_the_start_changes_rarely_and_only_forwards_as_turns_are_added(first: int, tokens: list[int]) -> None:
    said = [("user" if at % 2 == 0 else "assistant", size) for at, size in enumerate(tokens)]
    starts = [choose_start(sizes(said[:end], first), LIMITS) for end in range(80, 201, 2)]
    assert starts == sorted(starts)
    assert len(set(starts)) <= len(starts) // 5


def test_a_sample_contains_the_newest_positions_and_the_first() -> None:
    assert sample_positions(5, 9) == [5, 6, 7, 8, 9]
    chosen = sample_positions(100, 1_000_000)
    assert len(chosen) == len(set(chosen)) == 32
    assert chosen == sorted(chosen)
    assert (chosen[0], chosen[-16:]) == (100, list(range(999_985, 1_000_001)))
