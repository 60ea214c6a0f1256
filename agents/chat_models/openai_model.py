"""Ask any OpenAI-compatible model, through the openai SDK. The one module that imports openai.

The hot path reads the SDK's raw streaming response: its parsed chunks cost several times as much a token.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import httpx2

from agents.chat_models.dialect import OPENAI_ADDRESS, Dialect, adapt_dialect, guess_dialect, write_body
from agents.chat_models.read_deadline import ReadDeadline
from agents.chat_models.stream_parser import StreamParser
from agents.error_mapping import describe_error, map_error, read_error_text, redact_words
from agents.errors import ModelError, ModelErrorCategory
from agents.libraries import Library
from agents.overflow import find_overflow
from agents.types import Finished, ModelEndpoint, ModelItem, ModelRequest, RequestSent
from agents.usage import OutputBounds, OutputText, estimate_usage

if TYPE_CHECKING:
    import aiohttp
    import anyio
    import openai

    RawResponse = openai.AsyncAPIResponse[Any]
else:
    aiohttp, anyio, openai = Library("aiohttp"), Library("anyio"), Library("openai")

log = logging.getLogger(__name__)

MAX_ADAPTATIONS = 5
LEAST_ROOM_TOKENS = 1_024
"""An answer shorter than this is not worth asking for; the prompt is what must shrink then."""
TRAILER_S = 5.0
"""How long to wait for the usage chunk and [DONE] after the answer's end."""
DRAIN_S = 0.1
MAX_BODY_BYTES = 32_000_000
MAX_CONNECTIONS = 2_000
KEEPALIVE_S = 4.0
"""Below the 5 s after which common servers close an idle connection, so that no request meets a closing one."""
NO_KEY = "no-key"
"""The SDK insists on a key; local servers need none."""


class OpenAIModel:
    """A ChatModel at an address. Remembers what its server refuses of the protocol."""

    def __init__(self, endpoint: ModelEndpoint) -> None:
        self.endpoint = endpoint

    @property
    def name(self) -> str:
        return self.endpoint.model_id

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        await _import_sdk()  # which is not the server's time
        deadline = ReadDeadline(self.endpoint.first_token_timeout_s)
        response: RawResponse | None = None
        try:
            attempts_left = MAX_ADAPTATIONS
            while response is None:
                sent = self._write(request)
                yield sent
                response, request = await self._open(sent, deadline, may_adapt=attempts_left > 0)
                attempts_left -= 1
            parser, output = StreamParser(), OutputText()
            bounds = OutputBounds.of(request, self.endpoint.max_answer_bytes)
            chunks = _read_body(response)
            while (data := await _read_chunk(chunks, deadline, parser)) is not None:
                items = parser.feed(data)
                for item in items:
                    item = bounds.cut(item, output)
                    output.add(item)
                    yield item
                    if bounds.are_passed(output):
                        yield Finished("bound", parser.usage or estimate_usage(request, output))
                        return
                if parser.error is not None:
                    raise parser.error
                self._move_deadline(deadline, parser, has_progress=bool(items))
            for item in parser.close():
                output.add(item)
                yield item
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
                await response.close()

    def _log(self, error: ModelError) -> None:
        """Tell the operator what the provider said; users are never told."""
        error.provider_words = redact_words(error.provider_words, (self.endpoint.api_key,))
        status = f" {error.status}" if error.status else ""
        log.warning("%s failed (%s%s): %s", self.name, error.category, status, error.provider_words or "-")

    def _move_deadline(self, deadline: ReadDeadline, parser: StreamParser, *, has_progress: bool) -> None:
        """Wait anew after progress; comments that only keep the connection alive are none."""
        if parser.finish_reason is not None:
            deadline.move(DRAIN_S if parser.is_done else TRAILER_S)
        elif has_progress:
            deadline.move(self.endpoint.stall_timeout_s)

    def _write(self, request: ModelRequest) -> RequestSent:
        dialect = dialect_of(self.endpoint)
        return RequestSent(request, write_body(request, self.endpoint.model_id, dialect), dialect.style)

    async def _open(
        self, sent: RequestSent, deadline: ReadDeadline, *, may_adapt: bool
    ) -> tuple[RawResponse | None, ModelRequest]:
        """Return (response, request); no response and the request to try next where the server refused its form."""
        try:
            return await self._send(sent.body, deadline), sent.request
        except openai.APIStatusError as refusal:
            text = refusal.response.text
            adapted = self._adapt(sent.request, text) if refusal.status_code in (400, 416, 422) else None
            if adapted is None or not may_adapt:
                raise _map_refusal(refusal, self.endpoint) from refusal
            return None, adapted

    def _adapt(self, request: ModelRequest, refusal: str) -> ModelRequest | None:
        """Return the request to try next; None where no other form would help."""
        words = read_error_text(refusal)
        overflow = find_overflow(words)
        if overflow is not None:
            room = overflow.room_tokens * 95 // 100
            if LEAST_ROOM_TOKENS <= room < request.max_output_tokens:
                return replace(request, max_output_tokens=room)
            return None
        adapted = adapt_dialect(dialect_of(self.endpoint), words)
        if adapted is None:
            return None
        log.info("%s at %s wants another dialect: %s", self.name, self.endpoint.base_url or "OpenAI", adapted)
        _dialects[_dialect_key(self.endpoint)] = adapted
        return request

    async def _send(self, body: Mapping[str, Any], deadline: ReadDeadline) -> RawResponse:
        """Return the response once its headers are there. Raise APIStatusError for a refusal, else ModelError."""
        rest = {name: value for name, value in body.items() if name not in ("model", "stream")}
        with _plain_errors():
            completions = (await client_of(self.endpoint)).chat.completions.with_streaming_response
            # The SDK walks `messages` to transform what a TypedDict may hold: 150 ms for 1,000 of them, on the event
            # loop. What comes as extra_body is sent as it is, in its order: the stored hash is that of the bytes sent.
            manager = completions.create(model=body["model"], stream=True, messages=[], extra_body=rest)
            return await deadline.wait(manager.__aenter__())


async def fetch_models(endpoint: ModelEndpoint) -> object:
    """Return the parsed answer of GET /models. Raise ModelError."""
    try:
        with _plain_errors():
            client = await client_of(endpoint)  # imports the SDK, which is not the server's time
            async with asyncio.timeout(endpoint.connect_timeout_s):
                return await client.get("/models", cast_to=object)
    except openai.APIStatusError as refusal:
        raise _map_refusal(refusal, endpoint) from refusal


def embed_texts(endpoint: ModelEndpoint, texts: Sequence[str]) -> list[list[float]]:
    """Return one vector for each text, in their order.

    Blocks, for threads without an event loop, and gives up after the endpoint's `first_token_timeout_s`. Raises
    ModelError.
    """
    client = _blocking_client(endpoint.base_url, endpoint.api_key)
    timeout = openai.Timeout(endpoint.first_token_timeout_s, connect=endpoint.connect_timeout_s)
    try:
        with _plain_errors():
            answer = client.embeddings.create(
                model=endpoint.model_id, input=list(texts), encoding_format="float", timeout=timeout
            )
    except openai.APIStatusError as refusal:
        raise _map_refusal(refusal, endpoint) from refusal
    vectors = [item.embedding for item in sorted(answer.data or (), key=lambda item: item.index)]
    if len(vectors) != len(texts) or len({len(vector) for vector in vectors}) > 1:
        raise describe_error("bad_response", f"{len(texts)} texts, {len(vectors)} vectors.")
    return vectors


def _map_refusal(refusal: openai.APIStatusError, endpoint: ModelEndpoint) -> ModelError:
    error = map_error(refusal.status_code, refusal.response.text, refusal.response.headers)
    error.provider_words = redact_words(error.provider_words, (endpoint.api_key,))
    return error


@lru_cache(maxsize=8)
def _blocking_client(base_url: str, api_key: str) -> openai.OpenAI:
    http = openai.DefaultHttpxClient(verify=_tls_context(), follow_redirects=False)
    client = openai.OpenAI(
        api_key=api_key or NO_KEY, base_url=base_url or OPENAI_ADDRESS, http_client=http, max_retries=0
    )
    client.organization = client.project = None
    return client


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Raise a ModelError for whatever the SDK and its libraries raise, except APIStatusError."""
    try:
        yield
    except openai.APIStatusError:
        raise
    except TimeoutError as error:
        raise describe_error("timeout") from error
    except _transport_errors(openai.APIError) as error:
        root = _root_of(error)
        is_address = isinstance(root, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError)
        raise describe_error("not_found" if is_address else "connection", _name_error(root)) from error
    except (httpx2.InvalidURL, ValueError) as error:
        raise describe_error("not_found", f"The address or the key cannot be used: {error}") from error


def _read_body(response: RawResponse) -> AsyncIterator[bytes]:
    """Return the body's chunks without the SDK's layers, which cost time and do nothing for an event stream."""
    if "application/json" in response.headers.get("content-type", ""):
        return _read_json_body(response)
    if "content-encoding" in response.headers:
        return response.iter_bytes()
    stream = response.http_response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    return aiter(stream)


async def _read_json_body(response: RawResponse) -> AsyncIterator[bytes]:
    """Yield as one event the whole answer that some servers send where a stream was asked for."""
    body = bytearray()
    async for data in response.iter_bytes():
        body += data
        if len(body) > MAX_BODY_BYTES:
            raise describe_error("bad_response", "The answer has no end.")
    yield b"data: " + bytes(body).replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"


async def _read_chunk(
    chunks: AsyncIterator[bytes], deadline: ReadDeadline, parser: StreamParser
) -> bytes | None:
    """Return the next bytes; None at the end, also where the answer is complete and only [DONE] is missing."""
    try:
        return await deadline.wait(anext(chunks))
    except StopAsyncIteration:
        return None
    except TimeoutError as error:
        if parser.finish_reason is not None:
            return None
        raise describe_error("stalled" if parser.has_output else "timeout") from error
    except _transport_errors() as error:
        if parser.finish_reason is not None:
            return None
        category: ModelErrorCategory = "cut" if parser.has_output else "connection"
        raise describe_error(category, _name_error(_root_of(error))) from error


def _transport_errors(*others: type[Exception]) -> tuple[type[Exception], ...]:
    return *others, httpx2.HTTPError, httpx2.StreamError, aiohttp.ClientError, anyio.EndOfStream, OSError


def _root_of(error: BaseException) -> BaseException:
    """Return the first cause: the SDK itself only says "Connection error."."""
    while isinstance(error.__cause__, Exception) and type(error.__cause__) is not TimeoutError:
        error = error.__cause__
    return error


def _name_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


# --- what servers refused, kept as long as the process lives


_dialects: dict[tuple[str, str], Dialect] = {}


def _dialect_key(endpoint: ModelEndpoint) -> tuple[str, str]:
    return endpoint.base_url, endpoint.model_id


def dialect_of(endpoint: ModelEndpoint) -> Dialect:
    return _dialects.get(_dialect_key(endpoint)) or guess_dialect(endpoint)


# --- one HTTP client per event loop: a new one costs a TLS context and every connection


@dataclass(slots=True)
class _LoopClients:
    http: httpx2.AsyncClient
    keeper: AsyncGenerator[None, None]
    by_endpoint: dict[tuple[str, str, float], openai.AsyncOpenAI] = field(default_factory=dict)


_loops: dict[asyncio.AbstractEventLoop, _LoopClients] = {}


@cache
def _tls_context() -> ssl.SSLContext:
    return httpx2.create_ssl_context()


async def client_of(endpoint: ModelEndpoint) -> openai.AsyncOpenAI:
    await _import_sdk()
    loop = asyncio.get_running_loop()
    clients = _loops.get(loop) or await _add_loop(loop)
    key = (endpoint.base_url, endpoint.api_key, endpoint.connect_timeout_s)
    client = clients.by_endpoint.get(key)
    if client is None:
        client = clients.by_endpoint[key] = _make_client(endpoint, clients.http)
    return client


async def _import_sdk() -> None:
    """Import it in a thread at its first use: that takes a second, for which this loop would stand still."""
    if asyncio.get_running_loop() not in _loops:
        await asyncio.to_thread(import_module, "openai")


async def _add_loop(loop: asyncio.AbstractEventLoop) -> _LoopClients:
    limits = httpx2.Limits(max_connections=MAX_CONNECTIONS, keepalive_expiry=KEEPALIVE_S)
    # A redirect would carry the key to wherever it points.
    http = openai.DefaultAioHttpClient(verify=_tls_context(), follow_redirects=False, limits=limits)
    clients = _loops[loop] = _LoopClients(http, _close_with(loop, http))
    await anext(clients.keeper)
    return clients


async def _close_with(
    loop: asyncio.AbstractEventLoop, http: httpx2.AsyncClient
) -> AsyncGenerator[None, None]:
    """Close the client at the end of its loop: asyncio.run closes open generators first, then the loop."""
    try:
        yield
    finally:
        _loops.pop(loop, None)
        await http.aclose()


def _make_client(endpoint: ModelEndpoint, http: httpx2.AsyncClient) -> openai.AsyncOpenAI:
    client = openai.AsyncOpenAI(
        api_key=endpoint.api_key or NO_KEY,
        base_url=endpoint.base_url or OPENAI_ADDRESS,
        http_client=http,
        max_retries=0,
        # Reading has its own deadlines here: the first token and standing still are not the same.
        # `pool` covers what `connect` leaves out: looking up the name.
        timeout=openai.Timeout(
            connect=endpoint.connect_timeout_s, pool=endpoint.connect_timeout_s, read=None, write=None
        ),
    )
    # The SDK would take these from the environment, whomever the address belongs to.
    client.organization = client.project = None
    return client


async def close_clients() -> None:
    """Close this event loop's connections now, rather than at its end."""
    clients = _loops.get(asyncio.get_running_loop())
    if clients is not None:
        await clients.keeper.aclose()
