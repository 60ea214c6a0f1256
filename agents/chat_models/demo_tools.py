"""Choose the Demo model's tool by the words of a question, and describe the tool's result."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Sequence

from agents.prompts import FINAL_ANSWER_PROMPT, REPEATING_PROMPT
from agents.types import ModelRequest, ToolCallDelta
from memory.types import Message

SHOWN_CHARS = 4_000

_MEMORY_REQUEST = re.compile(
    r"(?is)\b(?:search|look)\s+(?:in\s+|through\s+)?(?:my|your|the)\s+memory\s+(?:for|about|on)\s+(?P<query>.+)"
)
_TIME_QUESTION = re.compile(
    r"(?i)^\W*(?:(?:please|can you)\W+)?(?:(?:tell me\s+)?(?:what|which)(?:\s+is|['’]s)?\s+)"
    r"(?:the\s+)?(?:current\s+)?(?:today['’]?s\s+)?(?:time|date|day|weekday)"
    r"(?:\s+(?:of the week|is it|it is|is today|today|now|right now|please|do we have))*\W*$"
)
_SUM_LEAD = re.compile(
    r"(?i)^\W*?(?:please\s+)?(?:what(?:['’]s|\s+is)|how much is|calculate|compute|work out)?\s*(?=[\d(.\-]|sqrt)"
)
_WORDS_OF_SUMS = (
    # Only commas between thousands: with any other comma the text is not a sum.
    (re.compile(r"(?<=\d),(?=\d{3}(?!\d))"), ""),
    (re.compile(r"(?i)%\s+of\b"), " / 100 *"),
    (re.compile(r"(?i)\b(?:times|multiplied by)\b|[×·]|(?<=\d)\s*x\s*(?=\d)"), "*"),
    (re.compile(r"(?i)\bdivided by\b|÷"), "/"),
    (re.compile(r"(?i)\bplus\b"), "+"),
    (re.compile(r"(?i)\bminus\b|−"), "-"),
    (re.compile(r"\^"), "**"),
)
MAX_SUM_CHARS = 300
_SUM = re.compile(r"(?:[\d\s.+\-*/%()]|sqrt)+")
# 2026-11-26 is a date, not a subtraction.
_DATE = re.compile(r"\d{1,4}-\d{1,2}-\d{1,4}|\d{1,2}/\d{1,2}/\d{2,4}")


def write_tool_call(request: ModelRequest) -> ToolCallDelta | None:
    """Return the call; None if no offered tool fits the question, or after a call."""
    question = request.messages[-1]
    if question.role != "user":
        return None
    call = _choose(question.text.strip(), {tool.name for tool in request.tools})
    return ToolCallDelta(0, "demo", call[0], json.dumps(call[1], ensure_ascii=False)) if call else None


def _choose(text: str, offered: Collection[str]) -> tuple[str, dict[str, str]] | None:
    if "memory_search" in offered and (asked := _MEMORY_REQUEST.search(text)):
        return "memory_search", {"query": asked["query"].strip(" \n?!.“”\"'")[:500]}
    if "clock" in offered and _TIME_QUESTION.search(text):
        return "clock", {}
    if "calculator" in offered and (expression := read_sum(text)):
        return "calculator", {"expression": expression}
    return None


def read_sum(text: str) -> str | None:
    """Return the expression if the whole question is one, else None."""
    # Check the length before the pattern, whose time grows with the square of blanks.
    lead = _SUM_LEAD.match(text) if len(text) <= MAX_SUM_CHARS else None
    if lead is None:
        return None
    expression = text[lead.end() :].rstrip("=?!. \n")
    for words, sign in _WORDS_OF_SUMS:
        expression = words.sub(sign, expression)
    if not _SUM.fullmatch(expression) or _DATE.fullmatch(expression):
        return None
    try:
        body = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
    return expression if isinstance(body, ast.BinOp | ast.Call) else None


def split_calls(messages: Sequence[Message]) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Return (messages up to the question, calls and results after it)."""
    end = len(messages)
    # The loop's own notes at the end are not questions.
    while end > 1 and messages[end - 1].text in (FINAL_ANSWER_PROMPT, REPEATING_PROMPT):
        end -= 1
    start = end
    while start > 1 and (messages[start - 1].role == "tool" or messages[start - 1].tool_calls):
        start -= 1
    return tuple(messages[:start]), tuple(messages[start:end])


def describe_calls(steps: Sequence[Message]) -> str:
    """Return the calls and their results, word for word."""
    arguments = {call.call_id: call.arguments for message in steps for call in message.tool_calls}
    lines = [
        f"I called the tool `{result.name}` with `{arguments.get(result.call_id, '{}')}`. "
        f"{'It failed' if result.is_error else 'It answered'}:\n\n{_quoted(result.text)}"
        for message in steps
        for result in message.tool_results
    ]
    return "\n\n".join(
        [*lines, "The **Demo model** chose it by the words of your question; a language model would decide."]
    )


def _quoted(text: str) -> str:
    shown = text[:SHOWN_CHARS] + (" […]" if len(text) > SHOWN_CHARS else "")
    return "\n".join(f"> {line}".rstrip() for line in shown.splitlines() or [""])
