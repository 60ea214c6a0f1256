"""Give tools to models without tool calling: described in the system prompt, called in fenced JSON."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from agents.chat_models.call_fences import CLOSE, OPEN, CallFences
from agents.chat_models.echoed_request import strip_echoed_request
from agents.errors import ModelError
from agents.types import (
    LIMIT_REASONS,
    UNFINISHED_REASONS,
    ChatModel,
    Finished,
    ModelItem,
    ModelRequest,
    RequestSent,
    TextDelta,
    ToolSpec,
    ToolsPrompted,
)
from memory.summaries.summary import fence
from memory.tokens import text_message, with_parts
from memory.turns import has_tool_calls
from memory.types import ImagePart, Message, Part, TextPart

log = logging.getLogger(__name__)

HOW_TO_CALL = f"""\
# Tools

To call a tool, write a block like this at the end of your message, then stop; one block for each call. The results \
come in the next message. Without such a block your message is your answer.

{OPEN}
{{"name": "the tool", "arguments": {{"its": "arguments"}}}}
{CLOSE}

There are these tools, each with the JSON schema of its arguments:
"""


class PromptedModel:
    """Adds tools to any chat model through its prompt."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        fences = CallFences()
        async with aclosing(self._model.stream(write_prompted(request))) as items:
            async for item in items:
                match item:
                    case TextDelta() if request.tools:
                        for found in fences.feed(item.text):
                            yield found
                    case Finished():
                        for found in fences.close():
                            yield found
                        # A truncated answer keeps its reason, because its last call may be incomplete.
                        has_calls = (
                            fences.call_count > 0 and item.reason not in UNFINISHED_REASONS | LIMIT_REASONS
                        )
                        yield replace(item, reason="tool_calls") if has_calls else item
                    case _:
                        yield item


class AutoToolsModel:
    """Calls tools natively, or through the prompt once the server has refused them.

    If no tools are offered and the server refuses calls without tools, earlier calls are written as text. What a server
    refused is remembered by `key` until the process ends.
    """

    def __init__(self, model: ChatModel, key: tuple[str, str]) -> None:
        self._model = model
        self._key = key

    @property
    def name(self) -> str:
        return self._model.name

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        if not request.tools and not has_tool_calls(request.messages):
            stream = self._model.stream(request)
        elif self._key in (_without_tools if request.tools else _without_tools | _without_bare_calls):
            stream = PromptedModel(self._model).stream(request)
        else:
            stream = self._try_native(request)
        async with aclosing(stream) as items:
            async for item in items:
                yield item

    async def _try_native(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        has_begun = False
        try:
            async with aclosing(self._model.stream(request)) as items:
                async for item in items:
                    has_begun |= not isinstance(item, RequestSent)
                    yield item
            return
        except ModelError as error:
            # Do not retry once something was passed on, because a second answer would follow it.
            if has_begun:
                raise
            # The result applies to all users of the model, so words from this request must not count.
            words = strip_echoed_request(f"{error.message} {error.provider_words}", request)
            if not request.tools and refuses_bare_calls(words):
                log.info(
                    "%s rejects earlier tool calls if no tools are offered (%s); sending them as text.",
                    self.name,
                    error.provider_words,
                )
                _without_bare_calls.add(self._key)
            elif refuses_tools(error, words):
                log.info(
                    "%s does not support tool calling (%s); tools are described in its prompt.",
                    self.name,
                    error.provider_words,
                )
                _without_tools.add(self._key)
            else:
                raise
        if self._key in _without_tools:
            text = f"{self.name} does not support tool calling; tools are described in its prompt."
            yield ToolsPrompted(text)
        async with aclosing(PromptedModel(self._model).stream(request)) as items:
            async for item in items:
                yield item


_without_tools: set[tuple[str, str]] = set()
_without_bare_calls: set[tuple[str, str]] = set()

_REFUSES_TOOLS = re.compile(
    r"(?:tool|function)s?(?:[ _-](?:use|call(?:s|ing)?|choice))?['\"`]?.{0,30}"
    r"(?:not (?:supported|enabled|available|permitted|allowed)|unsupported)"
    r"|(?:does ?n[o']t|not|no endpoints? found that|cannot) support.{0,30}(?:tool|function)"
    r"|(?:unsupported|unknown|unrecogni[sz]ed|unexpected).{0,40}['\"`]?\btools?\b"
    r"|enable-auto-tool-choice|tools param requires|extra (?:inputs|fields).{0,60}\btools\b",
    re.IGNORECASE | re.DOTALL,
)


def refuses_tools(error: ModelError, words: str) -> bool:
    """Return whether the error says that the server or the model does not accept tools. `words` are the server's
    own."""
    # These errors mention tools in passing, e.g. those that count the tokens of functions.
    if error.category in ("overflow", "rate_limit", "quota", "auth"):
        return False
    return bool(_REFUSES_TOOLS.search(words))


_REFUSES_BARE_CALLS = re.compile(
    r"tool_?config.{0,20}must be (?:defined|provided|present)|must (?:define|provide|include) (?:the )?['\"`]?tools\b"
    r"|(?:without|expects)(?: the)? ['\"`]?tools=?['\"`]? param",
    re.IGNORECASE | re.DOTALL,
)


def refuses_bare_calls(words: str) -> bool:
    """Return whether the server says that earlier calls require tools to be offered."""
    return bool(_REFUSES_BARE_CALLS.search(words))


def write_prompted(request: ModelRequest) -> ModelRequest:
    """Return the request in plain messages, with the tools described in the system prompt."""
    messages = [_write_message(message) for message in request.messages]
    if request.tools and messages and messages[0].role == "system":
        system = f"{messages[0].text}\n\n{describe_tools(request.tools)}"
        messages[0] = replace(text_message("system", system), kind=messages[0].kind)
    return replace(request, messages=tuple(messages), tools=())


def describe_tools(tools: Sequence[ToolSpec]) -> str:
    """Return instructions for calling tools, and the tools with their schemas."""
    lines = [
        f"- {tool.name}: {tool.description}\n  {json.dumps(tool.parameters, ensure_ascii=False)}"
        for tool in tools
    ]
    return HOW_TO_CALL + "\n".join(lines)


def _write_message(message: Message) -> Message:
    if message.role == "tool":
        return _as_data(message)
    if not message.tool_calls:
        return message
    blocks = [
        f'{OPEN}\n{{"name": {json.dumps(call.name)}, "arguments": {call.arguments or "{}"}}}\n{CLOSE}'
        for call in message.tool_calls
    ]
    said = [message.text] if message.text else []
    return with_parts(message, (TextPart("\n\n".join([*said, *blocks])),))


def _as_data(message: Message) -> Message:
    """Return results as a user message that does not start a turn, between tags that they cannot close."""
    texts = [
        fence("tool_result", f"{result.name}:\n{result.text or '(no output)'}")
        for result in message.tool_results
    ]
    images = [part for part in message.parts if isinstance(part, ImagePart)]
    parts: tuple[Part, ...] = (TextPart("\n".join(texts)), *images)
    return replace(with_parts(message, parts), role="user", kind="injected")
