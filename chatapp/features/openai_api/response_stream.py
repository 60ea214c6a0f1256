"""Writes an answer as the events of OpenAI's responses, and as the complete response."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal

from agents.errors import ModelError
from agents.types import Finished, ModelItem, ReasoningDelta, TextDelta, TokenUsage, ToolCallDelta
from chatapp.features.openai_api.response_shapes import (
    INCOMPLETE_REASONS,
    ResponseHead,
    call_output,
    message_output,
    new_name,
    reasoning_name,
    reasoning_output,
    response_shape,
    text_part,
)
from chatapp.features.openai_api.streams import Items, data_line, error_of
from chatapp.operations.errors import ServiceError

Event = dict[str, Any]
Kind = Literal["message", "reasoning", "function_call"]
PREFIXES: dict[Kind, str] = {"message": "msg", "reasoning": "rs", "function_call": "fc"}


@dataclass(slots=True)
class _Output:
    """One item of the output, as far as it is written."""

    kind: Kind
    index: int
    name: str
    call_id: str = ""
    function: str = ""
    pieces: list[str] = field(default_factory=list)
    is_open: bool = True

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def shape(self, *, announced: bool = False) -> dict[str, Any]:
        status = "in_progress" if announced else "completed"
        text = None if announced else self.text
        match self.kind:
            case "message":
                return message_output(self.name, text, status)
            case "reasoning":
                return reasoning_output(self.name, text, status)
            case "function_call":
                return call_output(self.name, self.call_id, self.function, text or "", status)


class ResponseWriter:
    """Turns the items of an answer into numbered events. `answer_name` is the id of its stored message, if any."""

    def __init__(self, head: ResponseHead, answer_name: str = "") -> None:
        self.head = head
        self.answer_name = answer_name
        self.outputs: list[_Output] = []
        self._calls: dict[int, _Output] = {}
        self._number = -1

    def begin(self) -> list[Event]:
        return [
            self._event(kind, response=response_shape(self.head, "in_progress"))
            for kind in ("response.created", "response.in_progress")
        ]

    def take(self, item: ModelItem) -> list[Event]:
        match item:
            case TextDelta(text=text):
                return list(self._write(self._open_as("message"), text))
            case ReasoningDelta(text=text):
                return list(self._write(self._open_as("reasoning"), text))
            case ToolCallDelta():
                return list(self._write(self._call_of(item), item.arguments))
            case Finished():
                return list(self._finish(item))
        return []

    def finished(self, usage: TokenUsage, reason: str) -> dict[str, Any]:
        """Return the whole response."""
        status = "incomplete" if reason in INCOMPLETE_REASONS else "completed"
        output = [each.shape() for each in self.outputs]
        return response_shape(self.head, status, output=output, usage=usage, reason=reason)

    def failed(self, error: ModelError | ServiceError) -> Event:
        failure = error_of(error)["error"]
        output = [each.shape() for each in self.outputs]
        shape = response_shape(
            self.head, "failed", output=output, error={"code": "server_error", "message": failure["message"]}
        )
        return self._event("response.failed", response=shape)

    # --- the events

    def _event(self, kind: str, **fields: Any) -> Event:
        self._number += 1
        return {"type": kind, "sequence_number": self._number, **fields}

    def _open_as(self, kind: Kind) -> _Output | Kind:
        # Text after another kind of output starts a new item, so that items stay in writing order.
        begun = self.outputs[-1:]
        if kind == "message" and self.answer_name:
            # A stored answer stays one message: when it is sent back, its id and text must match.
            begun = [each for each in self.outputs if each.name == self.answer_name]
        return next((each for each in begun if each.kind == kind and each.is_open), kind)

    def _call_of(self, item: ToolCallDelta) -> _Output:
        call = self._calls.get(item.index)
        if call is None:
            call = _Output(
                "function_call",
                -1,
                new_name("fc"),
                call_id=item.call_id or new_name("call"),
                function=item.name,
            )
            self._calls[item.index] = call
        return call

    def _write(self, target: _Output | Kind, text: str) -> Iterator[Event]:
        if isinstance(target, str):
            target = _Output(target, -1, self._name_of(target))
        if target.index < 0:
            # Calls may be written in parallel, so they stay open until the answer ends.
            if target.kind != "function_call":
                yield from self._close_last()
            target.index = len(self.outputs)
            self.outputs.append(target)
            yield from self._announce(target)
        target.pieces.append(text)
        # The first piece of a call often has a name and no arguments yet.
        if text:
            yield self._delta(target, text)

    def _name_of(self, kind: Kind) -> str:
        if self.answer_name and kind == "message":
            return self.answer_name
        if self.answer_name and kind == "reasoning":
            return reasoning_name(self.answer_name, len(self.outputs))
        return new_name(PREFIXES[kind])

    def _announce(self, output: _Output) -> Iterator[Event]:
        yield self._event(
            "response.output_item.added", output_index=output.index, item=output.shape(announced=True)
        )
        if output.kind == "message":
            yield self._event(
                "response.content_part.added", **_place(output), content_index=0, part=text_part("")
            )

    def _delta(self, output: _Output, text: str) -> Event:
        match output.kind:
            case "message":
                return self._event(
                    "response.output_text.delta", **_place(output), content_index=0, delta=text, logprobs=[]
                )
            case "reasoning":
                return self._event(
                    "response.reasoning_text.delta", **_place(output), content_index=0, delta=text
                )
            case "function_call":
                return self._event("response.function_call_arguments.delta", **_place(output), delta=text)

    def _close_last(self) -> Iterator[Event]:
        # Leave calls and stored answers to `_finish`: more pieces may follow.
        for output in self.outputs:
            if output.is_open and output.kind != "function_call" and output.name != self.answer_name:
                yield from self._close(output)

    def _close(self, output: _Output) -> Iterator[Event]:
        output.is_open = False
        place = _place(output)
        match output.kind:
            case "message":
                part = text_part(output.text)
                yield self._event(
                    "response.output_text.done", **place, content_index=0, text=output.text, logprobs=[]
                )
                yield self._event("response.content_part.done", **place, content_index=0, part=part)
            case "reasoning":
                yield self._event("response.reasoning_text.done", **place, content_index=0, text=output.text)
            case "function_call":
                yield self._event(
                    "response.function_call_arguments.done",
                    **place,
                    name=output.function,
                    arguments=output.text,
                )
        yield self._event("response.output_item.done", output_index=output.index, item=output.shape())

    def _finish(self, item: Finished) -> Iterator[Event]:
        for output in self.outputs:
            if output.is_open:
                yield from self._close(output)
        shape = self.finished(item.usage, item.reason)
        yield self._event(f"response.{shape['status']}", response=shape)


def _place(output: _Output) -> dict[str, Any]:
    return {"item_id": output.name, "output_index": output.index}


async def response_events(items: Items, writer: ResponseWriter) -> AsyncGenerator[bytes, None]:
    """Yield the events of a streamed response; an error in the middle is its last event."""
    for event in writer.begin():
        yield data_line(event, event["type"])
    try:
        async with aclosing(items):
            async for item in items:
                for event in writer.take(item):
                    yield data_line(event, event["type"])
    except (ModelError, ServiceError) as error:
        event = writer.failed(error)
        yield data_line(event, event["type"])
