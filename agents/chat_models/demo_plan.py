"""The Demo model's part in plan mode: one step for each part of a question, and a last one that looks at the others.

It can count words and not think, and says so; the graph, the order and the results are those of any plan.
"""

from __future__ import annotations

import json
import re

from agents.plan.choosing import split_parts
from agents.plan.inputs import REQUEST_LEAD
from agents.plan.prompts import ANALYST_MARK, PLANNER_MARK, RESULTS_MARK, STEP_MARK
from agents.types import ModelRequest

MAX_PARTS = 5
_RESULT = re.compile(r"<step_result>\n(Step .*?)\n</step_result>", re.DOTALL)
_HEADING = re.compile(r"Step (\S+) \((\w+)\): (.*)")


def write_plan_answer(request: ModelRequest) -> str | None:
    """None where the request has nothing to do with a plan."""
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
    """A single part has two steps, so that there is something to see."""
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
