"""Auto mode: a question of several parts gets a plan, any other one loop. Decided by its form alone, at no cost.

The form is a coarse sieve in favour of the cheaper way; the planner behind it may still answer with no steps.
"""

from __future__ import annotations

import re
from typing import Literal

WantedMode = Literal["react", "plan", "auto"]
RunMode = Literal["react", "plan"]
PLANNED_PARTS = 3
"""From so many parts on, working on them side by side is worth a planner and an analyst."""
LEAST_PART_CHARS = 4

_QUOTED = re.compile(r"```.*?(?:```|\Z)|^>.*$", re.DOTALL | re.MULTILINE)
_ITEM = re.compile(r"^\s*(?:[-*•]|\(?(?:\d{1,2}|[a-z])[.)])\s+(\S.*)$", re.MULTILINE)
_QUESTION = re.compile(r"[^.!?。！？\n]+[?？]")


def choose_mode(wanted: WantedMode, question: str) -> RunMode:
    if wanted != "auto":
        return wanted
    return "plan" if len(split_parts(question)) >= PLANNED_PARTS else "react"


def split_parts(question: str) -> tuple[str, ...]:
    """The items of a list in it, else its questions; none of what it quotes. Itself where it has no parts."""
    own = _QUOTED.sub("", question)
    for pattern in (_ITEM, _QUESTION):
        found = [" ".join(part.split()) for part in pattern.findall(own)]
        parts = tuple(part for part in found if len(part) >= LEAST_PART_CHARS)
        if len(parts) > 1:
            return parts
    return (" ".join(own.split()) or question.strip(),)
