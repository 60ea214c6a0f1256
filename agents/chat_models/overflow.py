"""Recognise errors about requests larger than the model's window, in any vendor's wording, and read the sizes.

tests/agents/overflow_wordings.json holds the wordings this was made from, each with its source.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LARGEST_WINDOW = 20_000_000
_MOST_DIGITS = 20


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE | re.DOTALL)


# Similar errors that are not overflows. These take precedence over every wording below.
_NOT_OVERFLOW = _any(
    r"rate[ _-]?limit",
    r"too many requests",
    r"too many concurrent",
    r"throttl",
    r"tokens? per (?:min|minute|hour|day|second)|tokens?/min|\b[TR]P[MD]\b",
    r"\bquota\b",
    r"insufficient[ _](?:quota|balance|credit|funds)|requires more credits|\bbilling\b",
    r"please wait before trying again|try again in \d",
    r"queue is full|(?:no|at) capacity|overloaded",
    # OpenRouter, if the account cannot pay for the requested tokens.
    r"can only afford|(?:dai|week|month)ly limit",
    r"deadline|time[d -]?out",
    r"速率|频率|限流|流控|额度|余额|每(?:分钟|秒|小时|天|日)",
)

_SIZED = r"\b(?:context|prompt|inputs?|messages|tokens?)\b"
_TOO_MUCH = r"(?:exceed|too (?:long|large)|(?:longer|larger|more) than|must (?:be|have) (?:less|<=))"
_OVERFLOW = _any(
    # In one sentence, what is measured and that there is too much of it: "the prompt … is longer than".
    rf"{_SIZED}[^.:;]{{0,60}}?{_TOO_MUCH}",
    rf"(?:exceed\w*|reduce|decrease|overflow\w*|too many)\b[^.:;]{{0,40}}?{_SIZED}",
    # The name of a model's limit, in words or in a code.
    r"(?:context|prompt|input|sequence|seq|model)[ _](?:length|len|size|window)",
    r"(?:context|prompt|request|window|size)\w*_(?:exceed|too)",
    r"request (?:exceeds the max\w* (?:allowed )?size|(?:entity )?too large)",
    r"max_tokens must be at least 1, got -\d",
    r"(?:prompt|(?<![_a-z])tokens?|文本|字数|输入).{0,12}(?:超长|过长|超过|超出|超限)",
    r"超(?:过|出).{0,8}(?:上下文|最大长度)|上下文.{0,8}(?:过长|超)",
)

# One message is longer than the provider accepts, whatever the window: shortening the history would not help.
_MESSAGE_TOO_LONG = _any(r"string too long|string_above_max_length", r"string value length \(\d+\) exceeds")

# Only the limit for the answer is invalid. If the error also states the size of the prompt, the numbers decide.
_PARAMETER = _any(
    r"(?:supports?|allows?) at most [\d,]+ (?:completion|output) tokens",
    r"maximum allowed number of output tokens|tokens you requested exceeds",
    r"range of max_(?:completion_)?tokens|valid range of max_(?:completion_)?tokens",
    r"max_(?:completion_|output_)?tokens\W{0,4} ?(?:is too large|must be less|cannot be greater|should be)",
    r"unsupported (?:parameter|value)|unknown (?:parameter|field)|unrecognized (?:request )?argument",
)

_NUMBER = r"(\d[\d,_]*)"


def _numbers(*patterns: str) -> list[re.Pattern[str]]:
    """Return the patterns with a group for a number in place of `#`."""
    return [re.compile(pattern.replace("#", _NUMBER), re.IGNORECASE | re.DOTALL) for pattern in patterns]


_WINDOW = _numbers(
    r'"?n_ctx"?\W{1,3}#',
    r"context length(?: of| is)? only #",
    r"model'?s context length \(#",
    r"available context size \(# tokens",
    r"(?:maximum (?:context |allowed |allowed input |input )length|max_seq_len)(?: of| is|:)? ?\(?#",
    r"(?:context|prompt) (?:length|size|window)(?: is| of|:)* ?\(?#",
    r"maximum context length of [\w./-]+ is #",
    r"maximum model length of #",
    r"configured context size is #",
    r"maximum token limit \(#",
    r"tokens? > # maximum",
    r"context limit: \d+ \+ \d+ > #",
    r"maximum number of tokens allowed \(?#",
    r"only supports up to #",
    r"too large for model with #",
    r"configured limit of #",
    r"token limit:? #",
    r"total tokens limit #",
    r"exceeds the limit of #",
    r"while limit is #",
    r"max_new_tokens` must be <= #",
    r"must have less than # tokens",
    r"range of input length should be \[\d+, ?#\]",
    r"cannot exceed #",
    r"n_ctx: #",
    r"max(?:imum)? input (?:tokens|length)(?: is)?:? #",
    r"max_(?:seq|model)_len(?:gth)?[ (:=]{1,3}#",
    r"max tokens of # exceeded",
)
_PROMPT = _numbers(
    r"\(# (?:in (?:the |your )?(?:messages|prompt)|of text input)",
    r"contains at least # input tokens",
    r"request has # input tokens",
    r"context limit: # \+",
    r"Given: # `inputs` tokens",
    r"resulted in # tokens",
)
_TOOLS = re.compile(r"(\d[\d,_]*) (?:in the functions|of tool input)", re.IGNORECASE)
_OUTPUT_LIMIT = _numbers(
    r"(?:supports?|allows?) at most # (?:completion|output) tokens",
    r"\d+ > #, which is the maximum allowed number of output tokens",
    r"range of max_(?:completion_)?tokens (?:is|should be) \[\d+, ?#\]",
    r"max_(?:completion_|output_)?tokens\W{0,4} ?must be less than or equal to `?#",
    r"max_(?:completion_|output_)?tokens\W{0,4} ?cannot be greater than #",
    r"expected a value <= #",
    r"tokens you requested exceeds the model limit of #",
)


@dataclass(frozen=True, slots=True)
class Overflow:
    """The tokens that an error states; None if it does not."""

    window_tokens: int | None = None
    prompt_tokens: int | None = None

    @property
    def room_tokens(self) -> int:
        """Return the tokens that the window leaves for the answer; 0 if unknown or if the prompt is too large."""
        if self.window_tokens is None or self.prompt_tokens is None:
            return 0
        return max(self.window_tokens - self.prompt_tokens, 0)


def find_overflow(text: str) -> Overflow | None:
    """Return what an error's text says about the window; None if the error is not an overflow."""
    if _NOT_OVERFLOW.search(text) or is_message_too_long(text) or not _OVERFLOW.search(text):
        return None
    prompt = _first_number(_PROMPT, text)
    if _PARAMETER.search(text) and prompt is None:
        return None
    tools = _TOOLS.search(text)
    # Some providers count the tools separately from the prompt.
    if prompt is not None and tools is not None:
        prompt += _read_number(tools[1]) or 0
    return Overflow(window_tokens=_first_number(_WINDOW, text), prompt_tokens=prompt)


def is_message_too_long(text: str) -> bool:
    """Return whether the provider refuses the length of a single message."""
    return bool(_MESSAGE_TOO_LONG.search(text))


def find_output_limit(text: str) -> int | None:
    """Return the model's output limit if an error about max_tokens states it."""
    return _first_number(_OUTPUT_LIMIT, text)


def _first_number(patterns: list[re.Pattern[str]], text: str) -> int | None:
    for pattern in patterns:
        found = pattern.search(text)
        if found and (number := _read_number(found[1])):
            return number
    return None


def _read_number(digits: str) -> int | None:
    digits = re.sub(r"\D", "", digits)
    # int() raises for a number of thousands of digits.
    number = int(digits) if len(digits) <= _MOST_DIGITS else 0
    return number if 0 < number <= LARGEST_WINDOW else None
