"""Send requests to OpenAI-compatible servers through the openai SDK, and read the bytes of their responses.

The only module that imports openai. The hot path uses the SDK's HTTP client directly, because its `create` and its
parsed chunks cost several times as much.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import httpx2
from pydantic import BaseModel, Field, ValidationError

from agents.chat_models.dialect import OPENAI_ADDRESS
from agents.chat_models.error_mapping import describe_error, map_error
from agents.chat_models.read_deadline import ReadDeadline
from agents.chat_models.stream_parser import StreamParser
from agents.errors import ModelError, ModelErrorCategory
from agents.guarded_http import tls_context
from agents.libraries import Library
from agents.text import read_json
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
"""Limit for a vector's coordinates, so that their squares fit into 32-bit floats. Excludes NaN and infinity."""
MAX_CONNECTIONS = 2_000
KEEPALIVE_S = 4.0
"""Less than the 5 s after which common servers close an idle connection, so that no request uses a closing one."""
NO_KEY = "no-key"
"""The SDK requires a key, but local servers need none."""


class RefusedError(Exception):
    """A server refused the request with an error status."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str]) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.text = text
        self.headers = headers

    def as_model_error(self, endpoint: ModelEndpoint) -> ModelError:
        return map_error(self.status, self.text, self.headers, secrets=(endpoint.api_key,))


async def open_completion(endpoint: ModelEndpoint, content: bytes, deadline: ReadDeadline) -> httpx2.Response:
    """Return the response once its headers have arrived. Raise RefusedError or ModelError."""
    with _plain_errors(endpoint):
        server, http = await _server_of(endpoint)
        return await deadline.wait(_send(http, server, "POST", server.completions, content))


async def _send(
    http: httpx2.AsyncClient, server: _Server, method: str, url: httpx2.URL, content: bytes | None = None
) -> httpx2.Response:
    """Send a request through the SDK's HTTP client. Its `create` validates, transforms and copies the request, which
    takes half of the CPU time of a call. Raise RefusedError."""
    request = http.build_request(
        method, url, headers=server.headers, content=content, timeout=server.client.timeout
    )
    response = await http.send(request, stream=True)
    if response.is_success:
        return response
    raise RefusedError(response.status_code, await _read_refusal(response), response.headers)


async def _read_refusal(response: httpx2.Response) -> str:
    """Return the beginning of an error response, whatever encoding it claims; less if the connection breaks."""
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
    """Return the parsed response of GET /models; None if it is not JSON. Raise ModelError."""
    try:
        with _plain_errors(endpoint):
            server, http = await _server_of(
                endpoint
            )  # imports the SDK, which is not part of the server's time
            async with asyncio.timeout(endpoint.connect_timeout_s):
                response = await _send(http, server, "GET", server.models)
                try:
                    body = await _read_whole(response)
                finally:
                    await response.aclose()
    except RefusedError as refusal:
        raise refusal.as_model_error(endpoint) from refusal
    return read_json(body)


def embed_texts(endpoint: ModelEndpoint, texts: Sequence[str]) -> list[list[float]]:
    """Return one vector for each text, in the same order.

    Blocks, so it is for threads without an event loop. Gives up after the endpoint's `first_token_timeout_s`. Raises
    ModelError.
    """
    client = _blocking_client(endpoint.base_url, endpoint.api_key)
    timeout = openai.Timeout(endpoint.first_token_timeout_s, connect=endpoint.connect_timeout_s)
    try:
        with _plain_errors(endpoint):
            # The SDK does not validate what it parses, so read the raw response.
            answer = client.embeddings.with_raw_response.create(
                model=endpoint.model_id, input=list(texts), encoding_format="float", timeout=timeout
            )
    except RefusedError as refusal:
        raise refusal.as_model_error(endpoint) from refusal
    try:
        rows = _Embeddings.model_validate_json(answer.content).data
    except ValidationError as error:
        raise describe_error("bad_response", "The response contains no valid vectors.") from error
    # Some servers leave the index out; those that send it may use any order.
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
def _plain_errors(endpoint: ModelEndpoint) -> Iterator[None]:
    """Raise RefusedError or ModelError for every error of the SDK and its libraries."""
    secrets = (endpoint.api_key,)
    try:
        yield
    except openai.APIStatusError as refusal:
        answer = refusal.response
        text = answer.content[:MAX_REFUSAL_BYTES].decode("utf-8", "replace")
        raise RefusedError(refusal.status_code, text, answer.headers) from refusal
    except TimeoutError as error:
        # Must be caught before the transport's errors, because it is an OSError, too.
        raise describe_error("timeout") from error
    except _transport_errors(openai.APIError) as error:
        root = _root_of(error)
        is_address = isinstance(root, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError)
        category: ModelErrorCategory = "not_found" if is_address else "connection"
        raise describe_error(category, _name_error(root), secrets=secrets) from error
    except (httpx2.InvalidURL, ValueError) as error:
        # Encoding a key that a header cannot hold raises ValueError.
        words = f"The address or the key cannot be used: {error}"
        raise describe_error("not_found", words, secrets=secrets) from error


def read_body(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Return the body's chunks, without the layers that cost time and do nothing for an event stream."""
    if "application/json" in response.headers.get("content-type", ""):
        return _read_json_body(response)
    if "content-encoding" in response.headers:
        return response.aiter_bytes()
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    return aiter(stream)


async def _read_json_body(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Yield the whole response as one event, because some servers send JSON although a stream was requested."""
    body = await _read_whole(response)
    # A line break would end the event; JSON has none inside strings.
    yield b"data: " + body.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"


async def _read_whole(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for data in response.aiter_bytes():
        body += data
        if len(body) > MAX_BODY_BYTES:
            raise describe_error("bad_response", "The response is too large.")
    return bytes(body)


async def read_chunk(
    chunks: AsyncIterator[bytes], deadline: ReadDeadline, parser: StreamParser
) -> bytes | None:
    """Return the next bytes; None at the end, also if the stream breaks or stalls after the end of the answer."""
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
        raise describe_error(category, _name_error(error), secrets=parser.secrets) from error
    except _transport_errors() as error:
        if parser.finish_reason is not None:
            return None
        category = "cut" if parser.has_output else "connection"
        raise describe_error(category, _name_error(_root_of(error)), secrets=parser.secrets) from error


def _transport_errors(*others: type[Exception]) -> tuple[type[Exception], ...]:
    return *others, httpx2.HTTPError, httpx2.StreamError, aiohttp.ClientError, anyio.EndOfStream, OSError


def _root_of(error: BaseException) -> BaseException:
    """Return the first cause, because the SDK itself only says "Connection error."."""
    while isinstance(error.__cause__, Exception) and type(error.__cause__) is not TimeoutError:
        error = error.__cause__
    return error


def _name_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


# --- one HTTP client per event loop: a new one costs a TLS context and all connections


@dataclass(frozen=True, slots=True)
class _Server:
    """What all requests to an endpoint share."""

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
    """Import the SDK in a thread on first use, because the import would block the event loop for a second."""
    if asyncio.get_running_loop() not in _loops:
        await asyncio.to_thread(import_module, "openai")


async def _add_loop(loop: asyncio.AbstractEventLoop) -> _LoopClients:
    limits = httpx2.Limits(max_connections=MAX_CONNECTIONS, keepalive_expiry=KEEPALIVE_S)
    # Following a redirect would send the key to its target.
    http = openai.DefaultAioHttpClient(verify=tls_context(), follow_redirects=False, limits=limits)
    # Set before the first await, so that a concurrent request finds it.
    clients = _loops[loop] = _LoopClients(http, _close_with(loop, http))
    # Start it now, because a loop closes at its end only generators that have run.
    await anext(clients.keeper)
    return clients


async def _close_with(
    loop: asyncio.AbstractEventLoop, http: httpx2.AsyncClient
) -> AsyncGenerator[None, None]:
    """Close the client at the end of its loop: asyncio.run closes open generators before the loop."""
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
        # `retry_pause` decides about retries; those of the SDK would come on top.
        max_retries=0,
        # ReadDeadline limits reads, because the first token and later stalls have different timeouts.
        # `pool` also covers looking up the name, which `connect` leaves out.
        timeout=openai.Timeout(
            connect=endpoint.connect_timeout_s, pool=endpoint.connect_timeout_s, read=None, write=None
        ),
    )
    # The SDK would take these from the environment and send them to any server.
    client.organization = client.project = None
    return client


async def close_clients() -> None:
    """Close this event loop's connections now instead of at its end."""
    clients = _loops.get(asyncio.get_running_loop())
    if clients is not None:
        await clients.keeper.aclose()
