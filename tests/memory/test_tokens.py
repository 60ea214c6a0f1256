"""Compare the estimator with two real tokenizers (fixtures/token_counts.json, made with rs-bpe 0.1)."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path

import pytest

from memory.tokens import (
    IMAGE_TOKENS,
    MESSAGE_OVERHEAD,
    UNCALIBRATED,
    Calibration,
    estimate_parts,
    estimate_text,
)
from memory.types import ImagePart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart

SAMPLES = json.loads((Path(__file__).parent / "fixtures" / "token_counts.json").read_text(encoding="utf-8"))
BY_KIND = {kind: list(group) for kind, group in groupby(SAMPLES, key=lambda sample: sample["kind"])}
KINDS = sorted(BY_KIND)
APART = {"russian", "arabic"}
"""Languages for which the two tokenizers differ so much that no estimate is within a quarter of both."""


def error_of(kind: str, encoding: str) -> float:
    estimated = sum(estimate_text(sample["text"]) for sample in BY_KIND[kind])
    real: int = sum(sample[encoding] for sample in BY_KIND[kind])
    return estimated / real - 1


@pytest.mark.mechanism("fim.estimate")
@pytest.mark.parametrize("kind", KINDS)
def test_an_uncalibrated_estimate_is_within_a_quarter_of_the_newer_tokenizer(kind: str) -> None:
    assert abs(error_of(kind, "o200k_base")) <= 0.25


@pytest.mark.parametrize("kind", sorted(set(KINDS) - APART))
def test_an_estimate_is_within_a_quarter_of_the_older_tokenizer_if_they_are_close(kind: str) -> None:
    assert abs(error_of(kind, "cl100k_base")) <= 0.25


@pytest.mark.parametrize("kind", sorted(APART))
def test_the_estimate_exceeds_the_newer_count_if_the_tokenizers_differ_much(kind: str) -> None:
    counted = {name: sum(sample[name] for sample in BY_KIND[kind]) for name in ("o200k_base", "cl100k_base")}
    assert counted["cl100k_base"] * 0.75 > counted["o200k_base"] * 1.25, "one number could be both"
    assert error_of(kind, "o200k_base") > 0.10


@pytest.mark.mechanism("fim.calibration")
@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
@pytest.mark.parametrize("kind", KINDS)
def test_after_five_responses_the_error_is_within_a_tenth(kind: str, encoding: str) -> None:
    """Requests grow like a conversation: each contains all previous texts."""
    texts = BY_KIND[kind] * 2
    calibration = Calibration()
    for turn in range(1, 6):
        estimated = sum(estimate_text(sample["text"]) for sample in texts[:turn])
        calibration = calibration.update(estimated, sum(sample[encoding] for sample in texts[:turn]))
    estimated = sum(estimate_text(sample["text"]) for sample in texts[:6])
    assert calibration.apply(estimated) == pytest.approx(sum(s[encoding] for s in texts[:6]), rel=0.10)


@pytest.mark.mechanism("fim.estimate")
def test_an_empty_text_has_no_tokens_and_any_other_has_at_least_one() -> None:
    assert estimate_text("") == 0
    assert [estimate_text(text) for text in (" ", "\n", "a", "\x00", "\ud800", "\u200b")] == [
        1,
        2,
        1,
        1,
        1,
        1,
    ]


@pytest.mark.mechanism("fim.estimate")
def test_a_message_counts_overhead_images_calls_results_and_reasoning() -> None:
    arguments = '{"text": "' + "word " * 6_000 + '"}'
    assert estimate_parts([]) == MESSAGE_OVERHEAD
    assert estimate_parts([ImagePart("f", "image/png")]) == MESSAGE_OVERHEAD + IMAGE_TOKENS
    assert estimate_parts([ToolCallPart("c", "write", arguments)]) > 5_000
    assert estimate_parts([ToolResultPart("c", "read", "word " * 6_000)]) > 5_000
    assert estimate_parts([ReasoningPart("word " * 6_000)]) > 5_000
    assert estimate_parts([TextPart("hi"), TextPart("hi")]) == MESSAGE_OVERHEAD + 2 * estimate_text("hi")


def test_an_image_counts_the_same_with_and_without_its_bytes() -> None:
    bare, filled = (
        ImagePart("f", "image/png"),
        ImagePart("f", "image/png", data_url="data:image/png;base64," + "A" * 9_999),
    )
    assert estimate_parts([bare]) == estimate_parts([filled])


def test_estimates_are_nearly_additive_so_that_parts_can_be_summed() -> None:
    text = BY_KIND["prose"][0]["text"]
    assert estimate_text(text * 10) == pytest.approx(10 * estimate_text(text), rel=0.05)


def test_the_first_response_sets_the_ratio_and_later_ones_move_it_by_a_quarter() -> None:
    first = Calibration().update(1_000, 1_200)
    assert first == Calibration(1.2, 1)
    many = first
    for _ in range(9):
        many = many.update(1_000, 1_200)
    assert many.update(1_000, 1_600).ratio == pytest.approx(1.3)


def test_the_ratio_stays_inside_its_bounds() -> None:
    assert Calibration().update(10, 10_000).ratio == 3.0
    low = Calibration()
    for reported in (500, 300, 200, 100, 100):
        low = low.update(1_000, reported)
    assert low.ratio == 0.5


def test_a_report_of_zero_tokens_does_not_change_the_calibration() -> None:
    known = Calibration(1.1, 4)
    assert known.update(0, 500) is known
    assert known.update(500, 0) is known


def test_reports_of_only_the_uncached_tokens_are_ignored() -> None:
    known = Calibration(1.1, 4)
    assert known.update(10_000, 300) is known
    assert Calibration().update(10_000, 7) == Calibration()


@pytest.mark.parametrize("ratio", [0.3, 0.77, 1.0, 1.13, 3.0])
def test_inverting_a_budget_gives_about_the_largest_estimate_that_fits(ratio: float) -> None:
    calibration = Calibration(ratio, 5)
    for budget in (0, 1, 999, 4_000, 60_001, 1_000_000):
        assert calibration.apply(calibration.invert(budget)) <= budget
        assert calibration.apply(calibration.invert(budget) + 2) > budget


def test_without_samples_an_estimate_is_not_changed() -> None:
    assert UNCALIBRATED.apply(1_234) == UNCALIBRATED.invert(1_234) == 1_234
