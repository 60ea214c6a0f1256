"""Estimates the tokens of a text without a tokenizer, and learns the error for each model.

The estimate is a weighted count of what byte-pair tokenizers split on: letters and changes of their case, digits,
punctuation and its boundaries, and the characters of each script. The weights are a least-squares fit against
o200k_base and cl100k_base. Outside Latin script these differ by up to 2.5 times, and the estimate is within a quarter
of both; in Russian and Arabic, where no number is, it is up to a quarter above the newer o200k_base. For a model that
counts differently, the ratio is learned from its first response.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import assert_never

from memory.types import (
    ImagePart,
    Kind,
    Message,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

MESSAGE_OVERHEAD = 4
IMAGE_TOKENS = 765
CALL_OVERHEAD = 8
"""The call id and the wrapping of a tool call or result."""

# Continuation bytes are removed, so that each character counts as one byte.
_CONTINUATION = bytes(range(0x80, 0xC0))


def _class_of(byte: int) -> bytes:
    """Return the class of a character by its first UTF-8 byte: a lower case, A upper case, 0 digit, . punctuation,
    other letters for scripts."""
    if byte < 0x80:
        char = chr(byte)
        if char.isalpha():
            return b"a" if char.islower() else b"A"
        if char.isdigit():
            return b"0"
        if char in "\r\n":
            return b"\n"
        return b" " if char in " \t\v\f" else b"!" if byte < 32 or byte == 127 else b"."
    for end, letter in _SCRIPTS:
        if byte < end:
            return letter
    return b"u"


_SCRIPTS = (
    (0xC3, b"s"),  # Latin-1 signs
    (0xCB, b"l"),  # Latin with accents
    (0xCE, b"u"),
    (0xD0, b"g"),  # Greek
    (0xD4, b"r"),  # Cyrillic
    (0xD6, b"m"),  # Armenian
    (0xD8, b"h"),  # Hebrew
    (0xDC, b"b"),  # Arabic
    (0xE0, b"u"),
    (0xE1, b"i"),  # Indic, Thai
    (0xE2, b"j"),  # Georgian, Vietnamese
    (0xE3, b"y"),  # dashes, quotes, arrows, signs
    (0xE4, b"k"),  # kana, CJK punctuation
    (0xEA, b"c"),  # Han
    (0xEE, b"o"),  # Hangul
    (0xF0, b"f"),  # full-width forms, variation selectors
    (0x100, b"e"),  # emoji and rare planes
)
_CLASSES = b"".join(_class_of(byte) for byte in range(256))
_SCRIPT_WEIGHTS = {
    b"s": 0.6, b"l": 1.53, b"u": 1.0, b"g": 0.834, b"r": 0.391, b"m": 0.96, b"h": 0.926, b"b": 0.39, b"i": 0.792,
    b"j": 0.819, b"y": 0.8, b"k": 0.794, b"c": 0.9, b"o": 0.9, b"f": 1.5, b"e": 2.518,
}  # fmt: skip


def estimate_text(text: str) -> int:
    """Return the estimated tokens of a text: 0 if it is empty, else at least 1."""
    if not text:
        return 0
    # `translate` loops in C. A lone surrogate, which has no UTF-8, becomes a question mark.
    classes = text.encode("utf-8", "replace").translate(_CLASSES, _CONTINUATION)
    total = _weigh_ascii(classes)
    if not text.isascii():
        total += sum(weight * classes.count(script) for script, weight in _SCRIPT_WEIGHTS.items())
    return max(1, math.ceil(total))


def _weigh_ascii(classes: bytes) -> float:
    """Return the weighted sum of classes and of pairs of classes, which are boundaries at which tokenizers split."""
    count = classes.count
    total = 0.246 * count(b"a")
    if uppers := count(b"A"):
        case_up, both_upper = count(b"aA"), count(b"AA")
        total += 0.248 * uppers - 0.212 * case_up + 0.063 * both_upper
        total += 3.017 * min(case_up, both_upper)  # mixed case without words: base64
    if digits := count(b"0"):
        total += 0.239 * digits + 0.024 * count(b"00") + 2.860 * count(b" 0")
        total += 1.305 * count(b".0") + 1.456 * count(b"0a")
    if marks := count(b"."):
        total += 0.367 * marks - 1.285 * count(b"....") + 0.730 * count(b" .")  # four: rulers
    if lines := count(b"\n"):
        total += 1.179 * lines - 1.192 * count(b".\n")
    return total


def estimate_part(part: Part) -> int:
    match part:
        case TextPart() | ReasoningPart():
            return estimate_text(part.text)
        case ImagePart():
            return IMAGE_TOKENS
        case ToolCallPart():
            return estimate_text(part.name) + estimate_text(part.arguments) + CALL_OVERHEAD
        case ToolResultPart():
            return estimate_text(part.text) + CALL_OVERHEAD
        case _:
            assert_never(part)


def estimate_parts(parts: Sequence[Part]) -> int:
    """Return the tokens of a message made of these parts, including its own overhead."""
    return MESSAGE_OVERHEAD + sum(estimate_part(part) for part in parts)


def text_message(role: Role, text: str, *, kind: Kind = "message", pinned: bool = False) -> Message:
    """Return a message that is not stored, with its token estimate."""
    parts = (TextPart(text),)
    return Message(role=role, parts=parts, tokens=estimate_parts(parts), kind=kind, pinned=pinned)


def with_parts(message: Message, parts: tuple[Part, ...]) -> Message:
    """Return the message with other parts and a new token estimate."""
    return dataclasses.replace(message, parts=parts, tokens=estimate_parts(parts))


def without_parts(message: Message, *kinds: type[Part]) -> Message:
    """Return the message without the parts of these kinds; itself if it has none."""
    parts = tuple(part for part in message.parts if not isinstance(part, kinds))
    return message if len(parts) == len(message.parts) else with_parts(message, parts)


def total_tokens(messages: Sequence[Message]) -> int:
    return sum(message.tokens for message in messages)


_RATIO_MIN, _RATIO_MAX = 0.5, 3.0
_LEAST_BELIEVED = 0.4
_STEADY_WEIGHT = 0.25


@dataclass(frozen=True, slots=True)
class Calibration:
    """The ratio of a model's token counts to our estimates, learned from the `prompt_tokens` that it reports."""

    ratio: float = 1.0
    samples: int = 0

    def update(self, estimated: int, reported: int) -> Calibration:
        """Return the calibration after one more response. Samples weigh 1, 1/2, 1/3 and from then on 1/4.

        Ignore a count below 0.4 of the expected one: servers that reuse a cached prompt report only its new part,
        others report a constant.
        """
        if estimated <= 0 or reported <= 0:
            return self
        seen = reported / estimated
        if seen < _LEAST_BELIEVED * self.ratio:
            return self
        if self.samples:
            # Limit the effect of one wrong count.
            seen = min(seen, self.ratio * 2)
        weight = max(1 / (self.samples + 1), _STEADY_WEIGHT)
        ratio = self.ratio + weight * (seen - self.ratio)
        return Calibration(min(max(ratio, _RATIO_MIN), _RATIO_MAX), self.samples + 1)

    def apply(self, tokens: int) -> int:
        """Convert an estimate to the model's own tokens."""
        return math.ceil(tokens * self.ratio)

    def apply_to_parts(self, sizes: Iterable[int]) -> list[int]:
        """Convert the estimates of a request's parts, so that they add up to the converted total: the running sum is
        rounded, not each part."""
        ends = [0, *map(self.apply, itertools.accumulate(sizes))]
        return [end - start for start, end in itertools.pairwise(ends)]

    def invert(self, tokens: int) -> int:
        """Return the largest estimate for which `apply` returns at most `tokens`."""
        # A float quotient may end just below a whole number.
        return math.floor(tokens / self.ratio + 1e-9)


UNCALIBRATED = Calibration()
