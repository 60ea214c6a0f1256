"""Writes the reminder that an agent gets after a compaction: which tools it has, and what it has done so far."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from memory.summaries.summary import fence
from memory.tokens import text_message
from memory.turns import split_turns
from memory.types import Message

DIRECT_TOOLS = 12
"""Up to this many tools are listed one by one with descriptions, more by category with names only."""
LINE_CHARS = 160
ACHIEVED_LINES = 8
ASKED_CHARS = 70
DONE = "Done so far:"


@dataclass(frozen=True, slots=True)
class ToolNote:
    name: str
    description: str = ""
    category: str = ""


def build_reminder(tools: Sequence[ToolNote], achieved: Sequence[str] = ()) -> Message | None:
    """Return the message to send after the summary; None if there is nothing to remind of."""
    return reminder_message(write_reminder(tools, achieved))


def reminder_message(text: str) -> Message | None:
    """Return a text of `write_reminder` as a message; None if it is empty."""
    return text_message("user", fence("reminder", text), kind="reminder") if text else None


def shorten_reminder(reminder: Message, max_tokens: int) -> Message | None:
    """Return the reminder in at most `max_tokens`, without the oldest lines of what was done; None if that is not
    enough.

    List all tools or none, because half a list would say that the others are gone.
    """
    lines = reminder.text.split("\n")
    while reminder.tokens > max_tokens:
        if DONE not in lines:
            return None
        oldest = lines.index(DONE) + 1
        if not lines[oldest].startswith("- "):
            return None
        del lines[oldest]
        if not lines[oldest].startswith("- "):
            lines.remove(DONE)
        reminder = text_message("user", "\n".join(lines), kind="reminder")
    return reminder if any(line.startswith("- ") for line in lines) else None


def write_reminder(tools: Sequence[ToolNote], achieved: Sequence[str] = ()) -> str:
    """Return the reminder's text; empty if there is nothing to remind of."""
    parts: list[str] = []
    if tools:
        parts.append(_list_tools(tools) if len(tools) <= DIRECT_TOOLS else _list_categories(tools))
    if achieved:
        lines = "\n".join(f"- {_one_line(line)}" for line in achieved[-ACHIEVED_LINES:])
        parts.append(f"{DONE}\n{lines}")
    return "\n\n".join(parts)


def list_achieved(messages: Sequence[Message]) -> list[str]:
    """Return the newest finished turns, oldest first, one line each: the question, the tools that ran, the start of the
    reply."""
    lines: list[str] = []
    for turn in reversed(split_turns(messages)):
        line = _achieved(turn)
        lines += [line] if line else []
        if len(lines) == ACHIEVED_LINES:
            break
    return lines[::-1]


def read_achieved(reminder: Message) -> list[str]:
    """Return the lines of what was done from a reminder as it was sent."""
    done = reminder.text.partition(f"{DONE}\n")[2].split("\n")
    return [line.removeprefix("- ") for line in itertools.takewhile(lambda line: line.startswith("- "), done)]


def _achieved(turn: Sequence[Message]) -> str:
    asked = next((message.text for message in turn if message.role == "user" and message.text), "")
    reply = next(
        (message.text for message in reversed(turn) if message.role == "assistant" and message.text), ""
    )
    if not asked or not reply:
        return ""
    tools = dict.fromkeys(call.name for message in turn for call in message.tool_calls)
    ran = f" [{', '.join(tools)}]" if tools else ""
    return f"{_one_line(asked, ASKED_CHARS)}{ran} → {_one_line(reply)}"


def _list_tools(tools: Sequence[ToolNote]) -> str:
    lines = "\n".join(f"- {tool.name}: {_one_line(tool.description)}".rstrip(": ") for tool in tools)
    return f"You still have these tools, and no others:\n{lines}"


def _list_categories(tools: Sequence[ToolNote]) -> str:
    # Sort them, because `groupby` joins only neighbours.
    ordered = sorted(tools, key=lambda tool: tool.category)
    lines = [
        f"- {category or 'other'}: {', '.join(tool.name for tool in group)}"
        for category, group in itertools.groupby(ordered, key=lambda tool: tool.category)
    ]
    return f"You still have {len(tools)} tools; their exact parameters are in the tool list:\n" + "\n".join(
        lines
    )


def _one_line(text: str, char_limit: int = LINE_CHARS) -> str:
    # Split no more of a long text than a line can show, with room for white space.
    line = " ".join(text[: 8 * char_limit].split())
    return line if len(line) <= char_limit else f"{line[: char_limit - 1]}…"
