"""Histories for property tests: turns with tool calls, images, pins, huge or empty messages, and broken chains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from memory.budget import TokenBudget
from memory.tokens import Calibration, estimate_parts, text_message
from memory.types import ImagePart, Message, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from memory.window.policy import ContextPolicy

WORDS = (
    "order A-17 costs $420 ",
    "väga hea ",
    "我们决定在十月十八日 ",
    "if x > 1: return x\n",
    "🎉 ",
    "and so on ",
)


def message(role: str, *parts: Part, pinned: bool = False, kind: str = "message") -> Message:
    return Message(role=role, parts=parts, tokens=estimate_parts(parts), pinned=pinned, kind=kind)  # type: ignore[arg-type]


def stored(messages: list[Message], first: int = 0) -> list[Message]:
    return [replace(each, id=f"m{at}", position=at) for at, each in enumerate(messages, start=first)]


def user(text: str, *, pinned: bool = False) -> Message:
    return message("user", TextPart(text), pinned=pinned)


def reply(text: str) -> Message:
    return message("assistant", TextPart(text))


def call(call_id: str, arguments: str = '{"q": "order"}', text: str = "") -> Message:
    said = (TextPart(text),) if text else ()
    return message("assistant", *said, ToolCallPart(call_id, "search", arguments))


def result(call_id: str, text: str = "found") -> Message:
    return message("tool", ToolResultPart(call_id, "search", text))


def spoken(messages: Sequence[Message]) -> list[Message]:
    """Return the messages of user and assistant, without tool chains."""
    return [each for each in messages if each.role in ("user", "assistant") and not each.tool_calls]


def plain_turns(count: int, words: int = 30) -> list[Message]:
    turns = [
        (
            user(f"Question {turn} " + "word " * words),
            reply(f"Answer {turn}: costs ${turn}00. " + "text " * words),
        )
        for turn in range(count)
    ]
    return stored([each for turn in turns for each in turn])


sizes = st.sampled_from((0, 1, 3, 10, 10, 30, 30, 100, 300, 2_000, 4_000))
texts = st.builds(lambda word, times: word * times, st.sampled_from(WORDS), sizes)


@st.composite
def tool_steps(draw: st.DrawFn, turn: int) -> list[Message]:
    """Draw a few calls, some without a result, and sometimes a result without a call."""
    steps: list[Message] = []
    for step in range(draw(st.integers(0, 3))):
        ids = [
            draw(st.sampled_from((f"c{turn}-{step}-{at}", "call_0"))) for at in range(draw(st.integers(1, 2)))
        ]
        calls = [ToolCallPart(each, "search", '{"q": "' + draw(texts) + '"}') for each in ids]
        steps.append(message("assistant", *calls))
        fate = draw(st.sampled_from(("answered", "answered", "answered", "lost", "late")))
        if fate == "late":
            steps.append(message("user", TextPart("and hurry"), pinned=True, kind="injected"))
        if fate != "lost":
            steps += [result(each, draw(texts)) for each in ids]
    if draw(st.integers(0, 9)) == 0:
        steps.append(result("orphan", draw(texts)))
    return steps


@st.composite
def turns(draw: st.DrawFn, turn: int) -> list[Message]:
    asked: list[Part] = [TextPart(draw(texts))]
    if draw(st.integers(0, 7)) == 0:
        asked.append(ImagePart("f1", "image/png", 640, 480))
    messages = [message("user", *asked, pinned=draw(st.integers(0, 9)) == 0)]
    if draw(st.integers(0, 2)) == 0:
        messages += draw(tool_steps(turn))
    if draw(st.integers(0, 9)):
        thought = (ReasoningPart(draw(texts)),) if draw(st.integers(0, 4)) == 0 else ()
        messages.append(
            message("assistant", *thought, TextPart(draw(texts)), pinned=draw(st.integers(0, 15)) == 0)
        )
    return messages


@st.composite
def histories(draw: st.DrawFn, max_turns: int = 15) -> list[Message]:
    """Draw a history, sometimes with a greeting of the assistant first."""
    greeting = [reply("Hello, how can I help?")] if draw(st.integers(0, 4)) == 0 else []
    count = draw(st.integers(0, max_turns))
    return stored(greeting + [each for turn in range(count) for each in draw(turns(turn))])


windows = st.one_of(
    st.sampled_from((1_000, 2_000, 4_096, 8_000, 8_192, 16_385, 32_768, 128_000, 200_000, 1_000_000)),
    st.integers(1_000, 1_000_000),
)


@st.composite
def budgets(draw: st.DrawFn) -> TokenBudget:
    window = draw(windows)
    output = draw(st.sampled_from((window // 2, min(64_000, window // 2), 4_096, 500)))
    return TokenBudget(window, output, draw(st.sampled_from((4_000, 4_000, 0, 1_000))))


policies = st.builds(
    ContextPolicy,
    strategy=st.sampled_from(("checkpoint", "summarize", "truncate", "turns", "structured")),
    keep_recent=st.sampled_from((10, 10, 4, 1, 0, 30)),
    trigger=st.sampled_from((0.75, 0.75, 0.15, 0.9)),
    reserve_ratio=st.sampled_from((0.10, 0.10, 0.0, 0.4)),
    max_turns=st.sampled_from((0, 0, 5, 20)),
    cooldown_turns=st.sampled_from((2, 0)),
    auto_compact=st.sampled_from((True, True, True, False)),
)
calibrations = st.builds(Calibration, st.sampled_from((1.0, 1.0, 0.6, 1.4)), st.just(5))
systems = st.sampled_from((0, 20, 200, 1_500)).map(
    lambda times: text_message("system", "You are helpful. " * times)
)
questions = st.builds(
    lambda text, image: message(
        "user", TextPart(text or "?"), *([ImagePart("q", "image/png")] if image else [])
    ),
    texts,
    st.sampled_from((False, False, False, True)),
)
