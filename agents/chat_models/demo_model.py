"""Answer if no model is configured. This is not a language model, and its answers say so.

Deterministic. It shows streaming, Markdown and its input, finds words in that, and calls the tool that a question
names. Its summaries are extracted sentences; its plans have a step for each part of the question, and a last one that
depends on the others.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable

from agents.chat_models.demo_answer import split_words, write_answer
from agents.chat_models.demo_tools import write_tool_call
from agents.chat_models.usage import OutputText, estimate_usage
from agents.chat_models.wire import encode_body, write_request
from agents.plan.choosing import split_parts
from agents.plan.prompts import ANALYST_MARK, PLANNER_MARK, REQUEST_LEAD, RESULTS_MARK, STEP_MARK
from agents.types import Finished, ModelItem, ModelRequest, RequestSent, TextDelta
from memory.summaries.extractive import extract_summary
from memory.summaries.summary import bounded_summary
from memory.summaries.summary_prompts import CLOSING
from memory.tokens import estimate_text, text_message
from memory.types import Message, Role

DEMO_NAME = "demo"
PACE_S = 0.02


class DemoModel:
    """The Demo model. `pace_s` is the pause between words, 0 in tests; summaries come without pauses."""

    def __init__(
        self, *, pace_s: float = PACE_S, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._pace_s = pace_s
        self._sleep = sleep

    @property
    def name(self) -> str:
        return DEMO_NAME

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        body = {"model": DEMO_NAME} | write_request(request)
        yield RequestSent(request, body, encode_body(body))
        if CLOSING in request.messages[0].text:
            text, pace_s = write_summary(request), 0.0
        elif (planned := write_plan_answer(request)) is not None:
            text, pace_s = planned, self._pace_s
        elif (call := write_tool_call(request)) is not None:
            calling = OutputText()
            calling.add(call)
            yield call
            yield Finished("tool_calls", estimate_usage(request, calling))
            return
        else:
            text, pace_s = write_answer(request), self._pace_s
        output = OutputText()
        for word in split_words(text):
            delta = TextDelta(word)
            output.add(delta)
            yield delta
            if pace_s:
                await self._sleep(pace_s)
        yield Finished("stop", estimate_usage(request, output))


# --- summaries


_ROLES: dict[str, Role] = {"User": "user", "Assistant": "assistant", "Tool": "tool", "System": "system"}


def write_summary(request: ModelRequest) -> str:
    """Return a summary of at most four fifths of the limit, because memory requests a quarter more than it accepts."""
    text = request.messages[-1].text
    space = request.max_output_tokens * 4 // 5
    previous = bounded_summary(_read_fenced(text, "previous_summary"), space // 2)
    transcript = _read_transcript(_read_fenced(text, "conversation") or text)
    extract = extract_summary(transcript, space - estimate_text(previous) - 4)
    return f"{previous}\n\n{extract}".strip()


def _read_fenced(text: str, tag: str) -> str:
    found = re.search(rf"<{tag}>\n(.*?)\n</{tag}>", text, re.DOTALL)
    return found[1] if found else ""


def _read_transcript(text: str) -> list[Message]:
    """Return the messages of a transcript written by memory.summaries.transcript."""
    messages: list[Message] = []
    for paragraph in text.split("\n\n"):
        speaker, colon, words = paragraph.partition(": ")
        if colon and speaker in _ROLES:
            messages.append(text_message(_ROLES[speaker], words))
        elif not re.fullmatch(r"\[\d{4}-\d\d-\d\d\]", paragraph):
            messages.append(text_message(messages[-1].role if messages else "user", paragraph))
    return messages


# --- plans


MAX_PARTS = 5
_RESULT = re.compile(r"<step_result>\n(Step .*?)\n</step_result>", re.DOTALL)
_HEADING = re.compile(r"Step (\S+) \((\w+)\): (.*)")


def write_plan_answer(request: ModelRequest) -> str | None:
    """Return the answer to a request of plan mode; None for any other request."""
    system, asked = request.messages[0].text, request.messages[-1].text
    if system.startswith(PLANNER_MARK):
        return _write_plan(asked)
    if system.startswith(ANALYST_MARK):
        return json.dumps({"goal_met": True, "confidence": 1.0, "missing": ""})
    if system.startswith(STEP_MARK):
        return _work(asked, [message.text for message in request.messages[1:-1]])
    note = next((message.text for message in request.messages if message.text.startswith(RESULTS_MARK)), None)
    return _answer(note) if note is not None else None


def _write_plan(asked: str) -> str:
    """Return a plan as JSON. Even a single part gets two steps, so that there is something to see."""
    request = asked.rpartition(REQUEST_LEAD)[2].strip()
    parts = split_parts(request)[:MAX_PARTS]
    steps = [
        {"id": f"s{number}", "title": part[:60], "task": part, "dependencies": []}
        for number, part in enumerate(parts, start=1)
    ]
    together = {
        "id": f"s{len(parts) + 1}",
        "title": "Put together",
        "task": "Put together what the other steps found.",
        "dependencies": [step["id"] for step in steps],
    }
    return json.dumps({"steps": [*steps, together]}, ensure_ascii=False)


def _work(task: str, found: list[str]) -> str:
    before = [heading[1] for text in found for heading in _HEADING.finditer(text)]
    given = f" I was given the results of {', '.join(before)}." if before else ""
    return f"The task has {len(task.split())} words and {len(task)} characters: “{task[:200]}”.{given}"


def _answer(note: str) -> str:
    rows = [
        f"- **{heading[3]}** ({heading[2]}): {' '.join(result[heading.end() :].split())}"
        for result in _RESULT.findall(note)
        if (heading := _HEADING.match(result))
    ]
    lead = (
        "Your message was worked on in steps, which you see as a graph. The **Demo model** behind them can count words "
        "and not think; a language model would do the tasks:"
    )
    return "\n".join([lead, "", *rows])
