"""In auto mode, choose a plan for a question of several parts, and a single loop for any other.

The form of the question decides, without a model call; the planner may still return no steps.
"""

from __future__ import annotations

import re
from typing import Literal

WantedMode = Literal["react", "plan", "auto"]
RunMode = Literal["react", "plan"]
PLANNED_PARTS = 3
"""With fewer parts, a planner and an analyst cost more than parallel steps save."""
LEAST_PART_CHARS = 4

# Each runs in linear time: no text is scanned again from a position in its middle.
_QUOTED = re.compile(r"```[\s\S]*?(?:```|\Z)|^>.*$", re.MULTILINE)
_ITEM = re.compile(r"^[^\S\n]*+(?:[-*•]|\(?(?:\d{1,2}|[a-z])[.)])[^\S\n]++(\S.*)$", re.MULTILINE)
_QUESTION = re.compile(r"(?<![^.!?。！？\n])[^.!?。！？\n]++[?？]")


def choose_mode(wanted: WantedMode, question: str) -> RunMode:
    if wanted != "auto":
        return wanted
    return "plan" if len(split_parts(question)) >= PLANNED_PARTS else "react"


def split_parts(question: str) -> tuple[str, ...]:
    """Return the list items in the question, else its single questions, else the whole text; ignore quotations."""
    own = _QUOTED.sub("", question)
    for pattern in (_ITEM, _QUESTION):
        found = [" ".join(part.split()) for part in pattern.findall(own)]
        parts = tuple(part for part in found if len(part) >= LEAST_PART_CHARS)
        if len(parts) > 1:
            return parts
    return (" ".join(own.split()) or question.strip(),)
