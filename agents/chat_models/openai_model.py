"""Call any OpenAI-compatible model in the dialect that its server accepts, and read its answer as a stream."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from dataclasses import replace

import httpx2

from agents.chat_models.dialect import Dialect, adapt_dialect, guess_dialect, write_body
from agents.chat_models.echoed_request import strip_echoed_request
from agents.chat_models.error_mapping import read_error_text, redact_words
from agents.chat_models.openai_client import RefusedError, import_sdk, open_completion, read_body, read_chunk
from agents.chat_models.overflow import find_overflow
from agents.chat_models.read_deadline import ReadDeadline
from agents.chat_models.stream_parser import StreamParser
from agents.chat_models.usage import OutputBounds, OutputText, estimate_usage
from agents.chat_models.wire import encode_body
from agents.errors import ModelError
from agents.ticks import ticks
from agents.types import Finished, ModelEndpoint, ModelItem, ModelRequest, RequestSent

log = logging.getLogger(__name__)

MAX_ADAPTATIONS = 5
LEAST_ROOM_TOKENS = 1_024
"""A shorter answer is not worth a request; the prompt must shrink instead."""
TRAILER_S = 5.0
"""How long to wait for the usage chunk and [DONE] after the end of the answer."""
DRAIN_S = 0.1
SMALL_READ_BYTES = 4_096
"""Smaller reads wait for a tick, because tokens that are read together cost little more than one."""
MAX_BYTES_PER_S = 4_000_000
"""Faster servers are read at this rate, because other answers wait during parsing. Fast ones send a tenth of it."""


class OpenAIModel:
    """A ChatModel at a network address. Remembers what its server refuses of the protocol."""

    def __init__(self, endpoint: ModelEndpoint) -> None:
        self.endpoint = endpoint

    @property
    def name(self) -> str:
        return self.endpoint.model_id

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        await import_sdk()  # not part of the server's time
        deadline = ReadDeadline(self.endpoint.first_token_timeout_s)
        response: httpx2.Response | None = None
        try:
            attempts_left = MAX_ADAPTATIONS
            while response is None:
                sent = self._write(request)
                yield sent
                response, request = await self._open(sent, deadline, may_adapt=attempts_left > 0)
                attempts_left -= 1
            parser, output = StreamParser((self.endpoint.api_key,)), OutputText()
            bounds = OutputBounds.of(request, self.endpoint.max_answer_bytes)
            chunks, together = read_body(response), ticks()
            while (data := await read_chunk(chunks, deadline, parser)) is not None:
                stage = parser.stage
                items = parser.feed(data)
                for item in bounds.keep(items, output):
                    yield item
                if bounds.are_passed(output):
                    break
                if parser.error is not None:
                    raise parser.error
                self._move_deadline(deadline, parser, has_progress=bool(items) or parser.stage != stage)
                if len(data) >= SMALL_READ_BYTES:
                    await asyncio.sleep(len(data) / MAX_BYTES_PER_S)
                elif parser.has_output and parser.finish_reason is None:
                    # Only between the first output and the end, both of which are passed on at once.
                    await together.wait()
            else:
                for item in bounds.keep(parser.close(), output):
                    yield item
            if bounds.are_passed(output):
                yield Finished("bound", parser.usage or estimate_usage(request, output))
                return
            if parser.broken_events:
                log.warning("%s sent %s events that cannot be read.", self.name, parser.broken_events)
            if parser.unknown_reason:
                words = redact_words(parser.unknown_reason, (self.endpoint.api_key,))
                log.warning("%s ended an answer with an unknown finish_reason: %s", self.name, words)
            yield Finished(parser.read_finish(), parser.usage or estimate_usage(request, output))
        except ModelError as error:
            self._log(error)
            raise
        finally:
            deadline.close()
            if response is not None:
                await response.aclose()

    def _log(self, error: ModelError) -> None:
        """Log what the provider said, for operators. Users never see it."""
        status = f" {error.status}" if error.status else ""
        log.warning("%s failed (%s%s): %s", self.name, error.category, status, error.provider_words or "-")

    def _move_deadline(self, deadline: ReadDeadline, parser: StreamParser, *, has_progress: bool) -> None:
        """Restart the deadline after progress. Keep-alive comments do not count, even after the answer's end."""
        if not has_progress:
            return
        if parser.finish_reason is not None:
            deadline.move(DRAIN_S if parser.is_done else TRAILER_S)
        else:
            deadline.move(self.endpoint.stall_timeout_s)

    def _write(self, request: ModelRequest) -> RequestSent:
        dialect = dialect_of(self.endpoint)
        body = write_body(request, self.endpoint.model_id, dialect)
        return RequestSent(request, body, encode_body(body), dialect.style)

    async def _open(
        self, sent: RequestSent, deadline: ReadDeadline, *, may_adapt: bool
    ) -> tuple[httpx2.Response | None, ModelRequest]:
        """Return (response, request). If the server refused the form, return None and the request to try next."""
        try:
            return await open_completion(self.endpoint, sent.content, deadline), sent.request
        except RefusedError as refusal:
            is_of_form = refusal.status in (400, 416, 422)
            adapted = self._adapt(sent.request, refusal.text) if is_of_form else None
            if adapted is None or not may_adapt:
                raise refusal.as_model_error(self.endpoint) from refusal
            return None, adapted

    def _adapt(self, request: ModelRequest, refusal: str) -> ModelRequest | None:
        """Return the request to try next; None if no other form would help."""
        words = read_error_text(refusal)
        overflow = find_overflow(words)
        if overflow is not None:
            room = overflow.room_tokens * 95 // 100
            if LEAST_ROOM_TOKENS <= room < request.max_output_tokens:
                return replace(request, max_output_tokens=room)
            return None
        # The result applies to all users of the model, so words from this request must not count.
        adapted = adapt_dialect(dialect_of(self.endpoint), strip_echoed_request(words, request))
        if adapted is None:
            return None
        log.info(
            "%s at %s needs different request options: %s",
            self.name,
            self.endpoint.base_url or "OpenAI",
            adapted,
        )
        _dialects[_dialect_key(self.endpoint)] = adapted
        return request


# --- dialects learned from refusals, kept until the process ends


_dialects: dict[tuple[str, str], Dialect] = {}


def _dialect_key(endpoint: ModelEndpoint) -> tuple[str, str]:
    return endpoint.base_url, endpoint.model_id


def dialect_of(endpoint: ModelEndpoint) -> Dialect:
    return _dialects.get(_dialect_key(endpoint)) or guess_dialect(endpoint)
