"""Two small memories for tests and for programs without a database: the last N messages, and a rolling summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memory.fallback import write_extract
from memory.policy import ContextPolicy
from memory.strategies.protocol import Rejected
from memory.summary import read_summary, summary_message
from memory.turns import safe_split
from memory.types import Message

Summarise = Callable[[str, Sequence[Message]], str]
"""(summary before, messages) → the summary of both."""


class WindowMemory:
    """The last `size` messages that are not of the system; a call is never parted from its results."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._messages: list[Message] = []

    def add_message(self, message: Message) -> None:
        self._messages.append(message)

    def get_messages(self) -> tuple[Message, ...]:
        system = [message for message in self._messages if message.role == "system"]
        others = [message for message in self._messages if message.role != "system"]
        return (*system, *others[safe_split(others, len(others) - self.size) if self.size else len(others) :])

    def clear(self) -> None:
        self._messages.clear()


class SummaryMemory:
    """Over `limit` messages, all but the `keep` newest become one summary; an extract where that is unusable."""

    def __init__(
        self,
        summarise: Summarise,
        *,
        limit: int = 20,
        keep: int = 6,
        policy: ContextPolicy = ContextPolicy(),
    ) -> None:
        self.summarise = summarise
        self.limit = limit
        self.keep = keep
        self.policy = policy
        self._system: list[Message] = []
        self._summary: Message | None = None
        self._messages: list[Message] = []

    def add_message(self, message: Message) -> None:
        if message.role == "system":
            self._system.append(message)
            return
        self._messages.append(message)
        if len(self._messages) > self.limit:
            self._compact()

    def get_messages(self) -> tuple[Message, ...]:
        return (*self._system, *([self._summary] if self._summary else []), *self._messages)

    def clear(self) -> None:
        self._system, self._summary, self._messages = [], None, []

    def _compact(self) -> None:
        split = safe_split(self._messages, len(self._messages) - self.keep)
        if not split:
            return
        leaving, self._messages = self._messages[:split], self._messages[split:]
        previous = read_summary(self._summary) if self._summary else ""
        answer = self.policy.behaviour.accept(
            self.summarise(previous, leaving),
            source=leaving,
            previous=previous,
            form=self.policy.summary_form,
        )
        if isinstance(answer, Rejected):
            text = write_extract(previous, leaving, self.policy.summary_max_tokens)
            self._summary = summary_message(text, stand_in=True)
        else:
            self._summary = summary_message(answer.text)
