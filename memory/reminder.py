"""What an agent is told right after a compaction: which tools it has, and what it has done so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from memory.summary import fence
from memory.tokens import text_message
from memory.types import Message

DIRECT_TOOLS = 12
"""Up to this many tools are listed one by one; of more only the categories."""
LINE_CHARS = 160
ACHIEVED_LINES = 8


@dataclass(frozen=True, slots=True)
class ToolNote:
    name: str
    description: str = ""
    category: str = ""


def build_reminder(tools: Sequence[ToolNote], achieved: Sequence[str] = ()) -> Message | None:
    """A message that stands behind the summary; None where there is nothing to remind of."""
    parts: list[str] = []
    if tools:
        parts.append(_list_tools(tools) if len(tools) <= DIRECT_TOOLS else _list_categories(tools))
    if achieved:
        lines = "\n".join(f"- {_one_line(line)}" for line in achieved[-ACHIEVED_LINES:])
        parts.append(f"Done so far:\n{lines}")
    if not parts:
        return None
    return text_message("user", fence("reminder", "\n\n".join(parts)), kind="reminder")


def _list_tools(tools: Sequence[ToolNote]) -> str:
    lines = "\n".join(f"- {tool.name}: {_one_line(tool.description)}".rstrip(": ") for tool in tools)
    return f"You still have these tools, and no others:\n{lines}"


def _list_categories(tools: Sequence[ToolNote]) -> str:
    ordered = sorted(tools, key=lambda tool: tool.category)
    lines = [
        f"- {category or 'other'}: {', '.join(tool.name for tool in group)}"
        for category, group in groupby(ordered, key=lambda tool: tool.category)
    ]
    return f"You still have {len(tools)} tools; their exact parameters are in the tool list:\n" + "\n".join(
        lines
    )


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LINE_CHARS else f"{line[: LINE_CHARS - 1]}…"
