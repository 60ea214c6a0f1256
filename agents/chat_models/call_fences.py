"""Find the calls that a model writes into its text as fenced JSON, while it streams. Fences are not shown."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

from agents.text import read_json
from agents.types import ModelItem, TextDelta, ToolCallDelta

OPEN, CLOSE = "```tool_call", "```"
CALL_WORDS = frozenset({"tool_call", "tool_calls", "tool", "tool_code"})
MAYBE_WORDS = frozenset({"json", ""})
"""Fences in which small models may write a call, too: their content decides."""
TAG = "<tool_call>"
UNREADABLE = "unreadable_call"
# Possessive quantifiers, because backtracking over a million spaces would take hours.
_LOOKS_LIKE_CALL = re.compile(r'\s*+\[?\s*+\{\s*+"(?:name|tool|tool_name|function)"\s*+:')
_COULD_BECOME_CALL = re.compile(r'\s*+\[?\s*+(?:\{\s*+(?:"\w{0,9}"?\s*+:?)?)?$')
MAX_UNDECIDED_CHARS = 500
"""A call is recognised sooner than this; some models write blank lines forever where JSON is expected."""
_NAME = re.compile(r'"(?:name|tool|tool_name|function)"\s*:\s*"([^"]+)"')
_FENCE_LINE = re.compile(r"(?<!`)```(?!`)([^\n`]{0,100})(?:\n|\Z)")
_END_OF_CALL = re.compile(r"\n[ \t]{0,40}```|```[ \t]{0,40}\n|</tool_call>")
_END_OF_CODE = re.compile(r"\n[ \t]{0,40}```")
_BEGINNING_OF_END = re.compile(r"\n[ \t]{0,40}`{0,2}$")
_CLOSE_AT_END = re.compile(r"```\s{0,40}$")
_LONGEST_END = 44
_PIECE_CHARS = 4_096
"""Input is read in pieces, because each step copies the held text, and a long text may take many steps."""

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
        self._call: list[str] = []
        """The beginning of the current call; `_held` is its rest."""
        self._may_end_in_line = True
        self._items: list[ModelItem] = []

    def feed(self, text: str) -> list[ModelItem]:
        """Return the text and calls that are decided with this piece."""
        for start in range(0, len(text), _PIECE_CHARS):
            self._held += text[start : start + _PIECE_CHARS]
            while self._step():
                pass
        return self._take()

    def close(self) -> list[ModelItem]:
        """Return the rest at the end of the stream: an open call as it is, anything else as text."""
        if self._state == "call" or (self._state == "maybe" and _LOOKS_LIKE_CALL.match(self._held)):
            self._read_call(_CLOSE_AT_END.sub("", "".join((*self._call, self._held))))
        else:
            self._show((self._fence if self._state == "maybe" else "") + self._held)
        self._held, self._call = "", []
        return self._take()

    def _take(self) -> list[ModelItem]:
        items, self._items = self._items, []
        return items

    def _show(self, text: str) -> None:
        if text and not self.call_count:
            self._items.append(TextDelta(text))

    def _step(self) -> bool:
        """Return whether something was found, so that the next step can follow at once."""
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
        fence, tag = _FENCE_LINE.search(self._held), self._held.find(TAG)
        if tag >= 0 and not (fence and fence.start() < tag):
            self._enter("call", tag, tag + len(TAG))
            return True
        if fence is None:
            kept = _partial_length(self._held, ("```", TAG))
            # More than three backticks are not a fence, so none of them is held back.
            is_longer_run = self._held[: len(self._held) - kept].endswith("`")
            self._show_all_but(0 if is_longer_run else kept)
            return False
        if not fence[0].endswith("\n"):  # wait for the rest of its line
            self._enter("text", fence.start(), fence.start())
            return False
        word = fence[1].strip().lower()
        if word in CALL_WORDS:
            self._enter("call", fence.start(), fence.end())
        elif word in MAYBE_WORDS:
            self._fence = fence[0]
            self._enter("maybe", fence.start(), fence.end())
        else:
            self._enter("code", fence.end(), fence.end())
        return True

    def _enter(self, state: _State, shown_to: int, held_from: int) -> None:
        self._show(self._held[:shown_to])
        self._held, self._state = self._held[held_from:], state

    def _pass_code(self) -> bool:
        end = _END_OF_CODE.search(self._held)
        if end is not None:
            self._enter("text", end.end(), end.end())
            return True
        # A new line with spaces and backticks may become the end of the code.
        start = _BEGINNING_OF_END.search(self._held, max(0, len(self._held) - _LONGEST_END))
        self._show_all_but(len(self._held) - start.start() if start else 0)
        return False

    def _decide(self) -> bool:
        if _LOOKS_LIKE_CALL.match(self._held):
            self._state = "call"
            return True
        if len(self._held) < MAX_UNDECIDED_CHARS and _COULD_BECOME_CALL.match(self._held):
            return False
        self._show(self._fence)
        self._state = "code"
        return True

    def _look_for_end(self) -> bool:
        held = self._held
        for end in _END_OF_CALL.finditer(held):
            if end[0].startswith(("\n", "<")) or self._ends_in_line(held[: end.start()]):
                self._read_call("".join((*self._call, held[: end.start()])))
                self._call, self._may_end_in_line = [], True
                self._held, self._state = held[end.end() :], "text"
                return True
        # The end may begin in the part that is kept; the part before it is not searched again.
        cut = max(0, len(held) - _LONGEST_END)
        self._call.append(held[:cut])
        self._held = held[cut:]
        return False

    def _ends_in_line(self, text: str) -> bool:
        """Return whether backticks at the end of a line of JSON close the call. JSON cannot contain a line break after
        backticks, so if the first such place is not the end, no later one is."""
        is_json = self._may_end_in_line and read_json("".join((*self._call, text))) is not None
        self._may_end_in_line = is_json
        return is_json

    def _show_all_but(self, count: int) -> None:
        cut = len(self._held) - count
        self._show(self._held[:cut])
        self._held = self._held[cut:]

    def _read_call(self, text: str) -> None:
        value = read_json(text)
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


def _name_and_arguments(call: dict[str, Any]) -> tuple[str, str]:
    """Return (name, arguments), also of a call wrapped as in OpenAI's format or with the keys of other models."""
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
