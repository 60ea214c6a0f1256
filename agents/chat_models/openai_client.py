"""Requests to OpenAI-compatible servers through the openai SDK, and the bytes of their answers. The one module that
imports openai.

The hot path uses the SDK's HTTP client: its `create` and its parsed chunks cost several times as much.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import httpx2
from pydantic import BaseModel, Field, ValidationError

from agents.chat_models.dialect import OPENAI_ADDRESS
from agents.chat_models.read_deadline import ReadDeadline
from agents.chat_models.stream_parser import StreamParser
from agents.error_mapping import describe_error, map_error, redact_words
from agents.errors import ModelError, ModelErrorCategory
from agents.guarded_http import tls_context
from agents.libraries import Library
from agents.types import ModelEndpoint

if TYPE_CHECKING:
    import aiohttp
    import anyio
    import openai
else:
    aiohttp, anyio, openai = Library("aiohttp"), Library("anyio"), Library("openai")

MAX_BODY_BYTES = 32_000_000
MAX_REFUSAL_BYTES = 64_000
MAX_COORDINATE = 1e9
"""Of a vector: its square has to be a number of 32 bits. NaN and infinity are outside."""
MAX_CONNECTIONS = 2_000
KEEPALIVE_S = 4.0
"""Below the 5 s after which common servers close an idle connection, so that no request meets a closing one."""
NO_KEY = "no-key"
"""The SDK insists on a key; local servers need none."""


class RefusedError(Exception):
    """A server answered with a status that refuses the request."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str]) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.text = text
        self.headers = headers

    def as_model_error(self, endpoint: ModelEndpoint) -> ModelError:
        error = map_error(self.status, self.text, self.headers)
        error.provider_words = redact_words(error.provider_words, (endpoint.api_key,))
        return error


async def open_completion(endpoint: ModelEndpoint, content: bytes, deadline: ReadDeadline) -> httpx2.Response:
    """Return the response once its headers are there. Raise RefusedError, else ModelError."""
    with _plain_errors():
        server, http = await _server_of(endpoint)
        return await deadline.wait(_send(http, server, "POST", server.completions, content))


async def _send(
    http: httpx2.AsyncClient, server: _Server, method: str, url: httpx2.URL, content: bytes | None = None
) -> httpx2.Response:
    """Send a request through the SDK's HTTP client. Its `create` validates, transforms and copies what is sent, which
    takes half of the CPU of a call. Raise RefusedError."""
    request = http.build_request(
        method, url, headers=server.headers, content=content, timeout=server.client.timeout
    )
    response = await http.send(request, stream=True)
    if response.is_success:
        return response
    raise RefusedError(response.status_code, await _read_refusal(response), response.headers)


async def _read_refusal(response: httpx2.Response) -> str:
    """Return the beginning of what a server says besides its status, whatever encoding it claims; less where it breaks
    off."""
    body = b""
    try:
        with suppress(*_transport_errors()):
            async for data in response.aiter_bytes():
                body += data[: MAX_REFUSAL_BYTES - len(body)]
                if len(body) >= MAX_REFUSAL_BYTES:
                    break
    finally:
        await response.aclose()
    return body.decode("utf-8", "replace")


async def fetch_models(endpoint: ModelEndpoint) -> object:
    """Return the parsed answer of GET /models; None where it is no JSON. Raise ModelError."""
    try:
        with _plain_errors():
            server, http = await _server_of(endpoint)  # imports the SDK, which is not the server's time
            async with asyncio.timeout(endpoint.connect_timeout_s):
                response = await _send(http, server, "GET", server.models)
                try:
                    body = await _read_whole(response)
                finally:
                    await response.aclose()
    except RefusedError as refusal:
        raise refusal.as_model_error(endpoint) from refusal
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def embed_texts(endpoint: ModelEndpoint, texts: Sequence[str]) -> list[list[float]]:
    """Return one vector for each text, in their order.

    Blocks, for threads without an event loop, and gives up after the endpoint's `first_token_timeout_s`. Raises
    ModelError.
    """
    client = _blocking_client(endpoint.base_url, endpoint.api_key)
    timeout = openai.Timeout(endpoint.first_token_timeout_s, connect=endpoint.connect_timeout_s)
    try:
        with _plain_errors():
            # The SDK checks nothing of what it parses.
            answer = client.embeddings.with_raw_response.create(
                model=endpoint.model_id, input=list(texts), encoding_format="float", timeout=timeout
            )
    except RefusedError as refusal:
        raise refusal.as_model_error(endpoint) from refusal
    try:
        rows = _Embeddings.model_validate_json(answer.content).data
    except ValidationError as error:
        raise describe_error("bad_response", "These are no vectors.") from error
    # Some servers leave the index out; those that give it need not keep the order.
    placed = {
        position if row.index is None else row.index: row.embedding for position, row in enumerate(rows)
    }
    if sorted(placed) != list(range(len(texts))) or len(set(map(len, placed.values()))) > 1:
        raise describe_error("bad_response", f"{len(texts)} texts, {len(rows)} vectors.")
    return [placed[position] for position in range(len(texts))]


class _Embedding(BaseModel):
    index: int | None = None
    embedding: list[Annotated[float, Field(ge=-MAX_COORDINATE, le=MAX_COORDINATE)]] = Field(min_length=1)


class _Embeddings(BaseModel):
    data: list[_Embedding]


@lru_cache(maxsize=8)
def _blocking_client(base_url: str, api_key: str) -> openai.OpenAI:
    http = openai.DefaultHttpxClient(verify=tls_context(), follow_redirects=False)
    client = openai.OpenAI(
        api_key=api_key or NO_KEY, base_url=base_url or OPENAI_ADDRESS, http_client=http, max_retries=0
    )
    client.organization = client.project = None
    return client


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Raise RefusedError or ModelError for every error that the SDK and its libraries raise."""
    try:
        yield
    except openai.APIStatusError as refusal:
        answer = refusal.response
        text = answer.content[:MAX_REFUSAL_BYTES].decode("utf-8", "replace")
        raise RefusedError(refusal.status_code, text, answer.headers) from refusal
    except TimeoutError as error:
        # Caught before the transport's errors: it is an OSError, too.
        raise describe_error("timeout") from error
    except _transport_errors(openai.APIError) as error:
        root = _root_of(error)
        is_address = isinstance(root, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError)
        raise describe_error("not_found" if is_address else "connection", _name_error(root)) from error
    except (httpx2.InvalidURL, ValueError) as error:
        # A header cannot hold every key: encoding it raises a ValueError.
        raise describe_error("not_found", f"The address or the key cannot be used: {error}") from error


def read_body(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Return the body's chunks without the layers that cost time and do nothing for an event stream."""
    if "application/json" in response.headers.get("content-type", ""):
        return _read_json_body(response)
    if "content-encoding" in response.headers:
        return response.aiter_bytes()
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    return aiter(stream)


async def _read_json_body(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Yield as one event the whole answer that some servers send where a stream was asked for."""
    body = await _read_whole(response)
    # A line end would end the event; inside a string JSON has none.
    yield b"data: " + body.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"


async def _read_whole(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for data in response.aiter_bytes():
        body += data
        if len(body) > MAX_BODY_BYTES:
            raise describe_error("bad_response", "The answer has no end.")
    return bytes(body)


async def read_chunk(
    chunks: AsyncIterator[bytes], deadline: ReadDeadline, parser: StreamParser
) -> bytes | None:
    """Return the next bytes; None at the end, also where the answer is complete and only [DONE] is missing."""
    category: ModelErrorCategory
    try:
        return await deadline.wait(anext(chunks))
    except StopAsyncIteration:
        return None
    except TimeoutError as error:
        if parser.finish_reason is not None:
            return None
        raise describe_error("stalled" if parser.has_output else "timeout") from error
    except httpx2.DecodingError as error:
        category = "cut" if parser.has_output else "bad_response"
        raise describe_error(category, _name_error(error)) from error
    except _transport_errors() as error:
        if parser.finish_reason is not None:
            return None
        category = "cut" if parser.has_output else "connection"
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


# --- one HTTP client per event loop: a new one costs a TLS context and every connection


@dataclass(frozen=True, slots=True)
class _Server:
    """What all requests to an endpoint have in common."""

    client: openai.AsyncOpenAI
    completions: httpx2.URL
    models: httpx2.URL
    headers: list[tuple[str, str]]


@dataclass(slots=True)
class _LoopClients:
    http: httpx2.AsyncClient
    keeper: AsyncGenerator[None, None]
    by_endpoint: dict[tuple[str, str, float], _Server] = field(default_factory=dict)


_loops: dict[asyncio.AbstractEventLoop, _LoopClients] = {}


async def _server_of(endpoint: ModelEndpoint) -> tuple[_Server, httpx2.AsyncClient]:
    await import_sdk()
    loop = asyncio.get_running_loop()
    clients = _loops.get(loop) or await _add_loop(loop)
    key = (endpoint.base_url, endpoint.api_key, endpoint.connect_timeout_s)
    server = clients.by_endpoint.get(key)
    if server is None:
        server = clients.by_endpoint[key] = _describe_server(_make_client(endpoint, clients.http))
    return server, clients.http


def _describe_server(client: openai.AsyncOpenAI) -> _Server:
    headers = {**client.default_headers, **client.auth_headers}
    sent = [(name, value) for name, value in headers.items() if isinstance(value, str)]
    url = client.base_url
    return _Server(client, httpx2.URL(f"{url}chat/completions"), httpx2.URL(f"{url}models"), sent)


async def import_sdk() -> None:
    """Import the SDK in a thread at its first use, which takes a second that would block the event loop."""
    if asyncio.get_running_loop() not in _loops:
        await asyncio.to_thread(import_module, "openai")


async def _add_loop(loop: asyncio.AbstractEventLoop) -> _LoopClients:
    limits = httpx2.Limits(max_connections=MAX_CONNECTIONS, keepalive_expiry=KEEPALIVE_S)
    # A redirect would carry the key to wherever it points.
    http = openai.DefaultAioHttpClient(verify=tls_context(), follow_redirects=False, limits=limits)
    # In place before the first await, so that a request at the same moment finds it.
    clients = _loops[loop] = _LoopClients(http, _close_with(loop, http))
    # Begun here: a loop closes at its end only generators that have run.
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
        # `retry_pause` decides about retries: those of the SDK would come on top.
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
