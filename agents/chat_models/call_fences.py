"""Find the calls that a model writes as fenced JSON into its text, while it streams; fences are not shown."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

from agents.types import ModelItem, TextDelta, ToolCallDelta

OPEN, CLOSE = "```tool_call", "```"
CALL_WORDS = frozenset({"tool_call", "tool_calls", "tool", "tool_code"})
MAYBE_WORDS = frozenset({"json", ""})
"""Fences in which small models write a call, too: their content decides."""
TAG = "<tool_call>"
UNREADABLE = "unreadable_call"
_LOOKS_LIKE_CALL = re.compile(r'\s*\[?\s*\{\s*"(?:name|tool|tool_name|function)"\s*:')
_COULD_BECOME_CALL = re.compile(r'\s*\[?\s*(?:\{\s*(?:"\w{0,9}"?\s*:?)?)?$')
_NAME = re.compile(r'"(?:name|tool|tool_name|function)"\s*:\s*"([^"]+)"')
_FENCE_LINE = re.compile(r"```([^\n`]*)\n")
_END_OF_CALL = re.compile(r"\n[ \t]*```|```[ \t]*(?:\n|$)|</tool_call>")
_END_OF_CODE = re.compile(r"\n[ \t]*```")

_State = Literal["text", "code", "maybe", "call"]


class CallFences:
    """Splits streamed text into text to show and calls.

    After the first call no text is shown: what a model writes there is a guess at the result.
    """

    def __init__(self) -> None:
        self.call_count = 0
        self._state: _State = "text"
        self._held = ""
        self._fence = ""
        self._items: list[ModelItem] = []

    def feed(self, text: str) -> list[ModelItem]:
        """Return the text and calls that are decided with this piece."""
        self._held += text
        while self._step():
            pass
        return self._take()

    def close(self) -> list[ModelItem]:
        """Return the rest at the end of the stream: an open call as it is, all else as text."""
        if self._state == "call" or (self._state == "maybe" and _LOOKS_LIKE_CALL.match(self._held)):
            self._read_call(self._held)
        else:
            self._show((self._fence if self._state == "maybe" else "") + self._held)
        self._held = ""
        return self._take()

    def _take(self) -> list[ModelItem]:
        items, self._items = self._items, []
        return items

    def _show(self, text: str) -> None:
        if text and not self.call_count:
            self._items.append(TextDelta(text))

    def _step(self) -> bool:
        """Return whether something was found, so that the next step can be tried at once."""
        match self._state:
            case "text":
                return self._look_for_fence()
            case "code":
                return self._pass_code()
            case "maybe":
                return self._decide()
            case "call":
                return self._look_for_end()

    def _look_for_fence(self) -> bool:
        fence, tag = self._held.find("```"), self._held.find(TAG)
        if tag >= 0 and not 0 <= fence < tag:
            self._enter("call", tag, tag + len(TAG))
            return True
        if fence < 0:
            self._show_all_but(_partial_length(self._held, ("```", TAG)))
            return False
        line = _FENCE_LINE.match(self._held, fence)
        if line is None:
            # The rest of its line decides; a long one, or one with more backticks, is not a call.
            rest = self._held[fence + 3 :]
            if len(rest) > 40 or "`" in rest:
                self._enter("text", fence + 3, fence + 3, shown=True)
                return True
            self._enter("text", fence, fence)
            return False
        word = line[1].strip().lower()
        if word in CALL_WORDS:
            self._enter("call", fence, line.end())
        elif word in MAYBE_WORDS:
            self._fence = line[0]
            self._enter("maybe", fence, line.end())
        else:
            self._enter("code", line.end(), line.end(), shown=True)
        return True

    def _enter(self, state: _State, shown_to: int, held_from: int, *, shown: bool = False) -> None:
        self._show(self._held[:shown_to])
        self._held, self._state = self._held[held_from:], state

    def _pass_code(self) -> bool:
        end = _END_OF_CODE.search(self._held)
        if end is not None:
            self._enter("text", end.end(), end.end())
            return True
        # A new line with spaces and backticks may become the end.
        start = re.search(r"\n[ \t]*`{0,2}$", self._held)
        self._show_all_but(len(self._held) - start.start() if start else 0)
        return False

    def _decide(self) -> bool:
        if _LOOKS_LIKE_CALL.match(self._held):
            self._state = "call"
            return True
        if _COULD_BECOME_CALL.match(self._held):
            return False
        self._show(self._fence)
        self._state = "code"
        return True

    def _look_for_end(self) -> bool:
        for end in _END_OF_CALL.finditer(self._held):
            if _read_json(self._held[: end.start()]) is not None or end[0].startswith(("\n", "<")):
                self._read_call(self._held[: end.start()])
                self._held, self._state = self._held[end.end() :], "text"
                return True
        return False

    def _show_all_but(self, count: int) -> None:
        cut = len(self._held) - count
        self._show(self._held[:cut])
        self._held = self._held[cut:]

    def _read_call(self, text: str) -> None:
        value = _read_json(text)
        calls = value if isinstance(value, list) else [value]
        if value is None or not all(isinstance(call, dict) for call in calls):
            name = _NAME.search(text)
            self._add(name[1] if name else UNREADABLE, text.strip())
            return
        for call in calls:
            self._add(*_name_and_arguments(call))

    def _add(self, name: str, arguments: str) -> None:
        self._items.append(ToolCallDelta(self.call_count, f"prompted-{self.call_count}", name, arguments))
        self.call_count += 1


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _name_and_arguments(call: dict[str, Any]) -> tuple[str, str]:
    """Return (name, arguments), also of a call wrapped as OpenAI does, or with keys other models were trained on."""
    inner = call.get("function")
    if isinstance(inner, dict):
        call = inner
    name = next((call[key] for key in ("name", "tool", "tool_name", "function") if key in call), UNREADABLE)
    keys = ("arguments", "parameters", "args", "input", "params")
    arguments: Any = next((call[key] for key in keys if key in call), {})
    return str(name), arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _partial_length(text: str, markers: tuple[str, ...]) -> int:
    """Return how many characters at the end of the text may begin a marker."""
    for length in range(min(len(text), max(map(len, markers)) - 1), 0, -1):
        if any(marker.startswith(text[-length:]) for marker in markers):
            return length
    return 0
