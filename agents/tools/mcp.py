"""Offer the tools of MCP servers over streamable HTTP. Each call has its own session, so no server can harm others.

The only module that imports the `mcp` SDK, and only when needed, because that takes a second and 40 MB.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import importlib
import json
import re
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import httpx2
from pydantic import ValidationError

from agents.guarded_http import ForbiddenHost, GuardedTransport, HostRules, Resolve, resolve_host
from agents.text import is_storable, is_visible, storable_text, visible_line
from agents.tools.mcp_schemas import is_usable, readable, without_slow_checks
from agents.tools.protocol import ToolCaller, ToolFailure, ToolImage, ToolOutput, ToolTraits, ToolUncertain
from agents.types import SERVER_END, ToolSpec
from memory.language.neutral_text import neutralise

MAX_TOOLS = 100
MAX_PAGES = 10
MAX_NAME = 64
"""Limit of providers for the name of a tool."""
MAX_SERVER_NAME = 200
"""Limit for the name that a server gives its tool."""
MAX_DESCRIPTION = 1_000
MAX_RESPONSE_BYTES = 4 * 2**20
MAX_IMAGES = 10
MAX_ERROR_CHARS = 1_000
LIST_TIMEOUT_S = 20.0
# `GuardedTransport` refuses compressed responses.
HEADERS = {"User-Agent": "Palimpsest", "Accept-Encoding": "identity"}

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class McpProblem(Exception):
    """An error of a server or of its response; the message is one sentence."""


class McpBroken(McpProblem):
    """A call without a readable response: it may or may not have happened."""


@dataclass(frozen=True, slots=True)
class McpEndpoint:
    """How to reach a server. `name` is the prefix of its tools' names and contains no double underscore."""

    name: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_own: bool = False
    """Whether it may have a private address."""
    timeout_s: float = 30.0

    @property
    def rules(self) -> HostRules:
        return HostRules.of_address(httpx2.URL(self.url), is_own=self.is_own)


@dataclass(frozen=True, slots=True)
class McpToolFacts:
    """A tool as its server lists it, within our limits."""

    name: str
    description: str
    parameters: dict[str, Any]
    is_idempotent: bool = False

    @property
    def fingerprint(self) -> str:
        """Return a hash of everything that the model and the loop know about the tool.

        An operator approves a tool by its fingerprint, so that a server cannot change description or schema unnoticed.
        """
        listing = [self.name, self.description, self.parameters, self.is_idempotent]
        # Sort the keys, because their order makes no difference.
        return hashlib.sha256(json.dumps(listing, sort_keys=True).encode()).hexdigest()


def changed_tools(approved: Mapping[str, str], listed: Iterable[McpToolFacts]) -> tuple[str, ...]:
    """Return the names of the tools that differ from those approved; `approved` has fingerprints by name."""
    return tuple(facts.name for facts in listed if approved.get(facts.name) != facts.fingerprint)


@dataclass(frozen=True, slots=True)
class McpListing:
    """The tools that a server offers, and the names of those that no model can use."""

    tools: tuple[McpToolFacts, ...]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool of a server as the loop sees it. `offered_name` is unique among all tools of all servers."""

    endpoint: McpEndpoint
    facts: McpToolFacts
    offered_name: str
    needs_consent: bool
    resolve: Resolve = resolve_host

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.offered_name, self.facts.description, self.facts.parameters)

    @property
    def traits(self) -> ToolTraits:
        return ToolTraits(
            timeout_s=self.endpoint.timeout_s,
            is_idempotent=self.facts.is_idempotent,
            needs_consent=self.needs_consent,
            rights=frozenset({"server"}),
        )

    async def call(self, arguments: Mapping[str, Any], caller: ToolCaller) -> ToolOutput:
        try:
            return await call_tool(self.endpoint, self.facts.name, arguments, self.resolve)
        except McpBroken as broken:
            raise ToolUncertain(str(broken)) from None
        except McpProblem as problem:
            raise ToolFailure(str(problem)) from None


def offer_tools(
    endpoint: McpEndpoint,
    listed: Iterable[McpToolFacts],
    *,
    needs_consent: bool,
    resolve: Resolve = resolve_host,
) -> list[McpTool]:
    """Return the tools under names that providers accept. Of several tools with the same name, keep the first."""
    offered: dict[str, McpTool] = {}
    for facts in listed:
        name = _offered_name(endpoint, facts)
        offered.setdefault(name, McpTool(endpoint, facts, name, needs_consent, resolve))
    return list(offered.values())


def _offered_name(endpoint: McpEndpoint, facts: McpToolFacts) -> str:
    return f"{endpoint.name}{SERVER_END}{_NOT_IN_NAMES.sub('_', facts.name)}"[:MAX_NAME]


async def list_tools(endpoint: McpEndpoint, resolve: Resolve = resolve_host) -> McpListing:
    """Return the tools that the server offers. Raise McpProblem.

    Leave out tools that no model can use, and those whose offered name another tool already has.
    """
    found: dict[str, McpToolFacts] = {}
    left_out: list[str] = []
    async with _session(endpoint, LIST_TIMEOUT_S, resolve) as client:
        cursor = None
        for _ in range(MAX_PAGES):
            page = await client.list_tools(cursor=cursor)
            for tool in page.tools:
                facts = _facts(tool)
                if facts is None or found.setdefault(_offered_name(endpoint, facts), facts) is not facts:
                    left_out.append(_bounded(visible_line(storable_text(tool.name)), MAX_NAME))
            cursor = page.next_cursor
            if cursor is None or len(found) >= MAX_TOOLS:
                break
    return McpListing(tuple(found.values())[:MAX_TOOLS], tuple(left_out[:MAX_TOOLS]))


async def call_tool(
    endpoint: McpEndpoint, name: str, arguments: Mapping[str, Any], resolve: Resolve = resolve_host
) -> ToolOutput:
    """Return the result. Raise McpProblem, also if the tool fails, and McpBroken if a sent call has no outcome."""
    is_sent = False
    try:
        async with _session(endpoint, endpoint.timeout_s, resolve) as client:
            types = (await _sdk()).types
            request = types.CallToolRequest(
                params=types.CallToolRequestParams(name=name, arguments=dict(arguments))
            )
            # Set before sending: whatever fails from here on, the call may have happened.
            is_sent = True
            # The SDK's `call_tool` would validate the result against a schema that the server chose.
            result = await client.session.send_request(request, types.CallToolResult)
    except McpBroken as broken:
        if is_sent:
            raise
        raise McpProblem(str(broken)) from None
    # Megabytes of base64 and text would block the event loop.
    output = await asyncio.to_thread(_output, result.content, result.structured_content)
    if result.is_error:
        raise McpProblem(output.text or "The tool failed without an error message.")
    return output


@dataclass(frozen=True, slots=True)
class _Sdk:
    client: Any
    streams: Any
    types: Any
    error: type[Exception]


async def _sdk() -> _Sdk:
    return await asyncio.to_thread(_load_sdk)


@lru_cache(maxsize=1)
def _load_sdk() -> _Sdk:
    mcp = importlib.import_module("mcp")
    http = importlib.import_module("mcp.client.streamable_http")
    return _Sdk(mcp.Client, http.streamable_http_client, importlib.import_module("mcp.types"), mcp.MCPError)


@asynccontextmanager
async def _session(endpoint: McpEndpoint, timeout_s: float, resolve: Resolve) -> AsyncGenerator[Any, None]:
    """Yield a client. Raise McpProblem for all its errors."""
    sdk = await _sdk()
    limit = asyncio.timeout(timeout_s)
    try:
        async with limit, _http_client(endpoint, resolve) as http:
            streams = sdk.streams(endpoint.url, http_client=http)
            async with sdk.client(streams, cache=None, read_timeout_seconds=timeout_s) as client:
                yield client
    except (TimeoutError, *_PROBLEMS, sdk.error) as error:
        if _is_silence(error, sdk):
            silence = f"The MCP server {endpoint.name} did not answer within {timeout_s:g} s."
            raise McpBroken(silence) from None
        problem = McpProblem if _is_an_answer(error, sdk) else McpBroken
        raise problem(f"The MCP server {endpoint.name}: {_sentence(error)}") from None


_PROBLEMS = (
    httpx2.HTTPError,
    httpx2.InvalidURL,
    ForbiddenHost,
    ValidationError,
    RuntimeError,
    ValueError,
    # Task groups wrap the errors raised inside them.
    ExceptionGroup,
)


def _http_client(endpoint: McpEndpoint, resolve: Resolve) -> httpx2.AsyncClient:
    transport = GuardedTransport(
        endpoint.rules, resolve, max_bytes=MAX_RESPONSE_BYTES, keeps_connections=True
    )
    return httpx2.AsyncClient(
        transport=transport,
        headers={**HEADERS, **endpoint.headers},
        timeout=endpoint.timeout_s,
        trust_env=False,
    )


def _is_an_answer(error: BaseException, sdk: _Sdk) -> bool:
    """Return whether the server refused or was never reached, so that the call has certainly not happened."""
    error = _first(error)
    if isinstance(error, sdk.error):
        silences = (sdk.types.CONNECTION_CLOSED, sdk.types.REQUEST_TIMEOUT)
        return getattr(error, "code", 0) not in silences
    return isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.InvalidURL | ForbiddenHost)


def _is_silence(error: BaseException, sdk: _Sdk) -> bool:
    """Return whether the error is a timeout: ours, the SDK's or the HTTP client's, which all have the same length."""
    error = _first(error)
    if isinstance(error, sdk.error):
        return bool(getattr(error, "code", 0) == sdk.types.REQUEST_TIMEOUT)
    is_timeout = isinstance(error, TimeoutError | httpx2.TimeoutException)
    return is_timeout and not isinstance(error, httpx2.ConnectTimeout)


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _sentence(error: BaseException) -> str:
    """Return a sentence about the error, or the first error of a group."""
    error = _first(error)
    if isinstance(error, ValidationError):
        return "its answer does not follow the protocol."
    if isinstance(error, httpx2.ConnectError):
        return "it cannot be reached."
    said = storable_text(str(getattr(error, "message", "") or str(error) or type(error).__name__))
    return _bounded(said, MAX_ERROR_CHARS).rstrip(".") + "."


def _bounded(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} […]"


# --- a server's output, cleaned and within our limits


def _facts(tool: Any) -> McpToolFacts | None:
    """Return the tool as offered; None if no model can use its schema or its name is too long."""
    schema = readable(dict(tool.input_schema))
    if schema.get("type", "object") != "object" or not tool.name.strip():
        return None
    if not is_storable(tool.name) or not is_visible(tool.name) or not is_usable(schema):
        return None
    if len(tool.name) > MAX_SERVER_NAME:
        return None
    hints = tool.annotations
    return McpToolFacts(
        name=tool.name,
        description=_bounded(neutralise(visible_line(tool.description or tool.name)), MAX_DESCRIPTION),
        # Some providers refuse an object without properties.
        parameters={"type": "object", "properties": {}, **without_slow_checks(schema)},
        is_idempotent=bool(hints and (hints.read_only_hint or hints.idempotent_hint)),
    )


def _output(content: Sequence[Any], structured: Any) -> ToolOutput:
    texts: list[str] = []
    images: list[ToolImage] = []
    for block in content:
        match block.type:
            case "text":
                texts.append(_clean(block.text))
            case "image" if len(images) < MAX_IMAGES:
                images.append(_image(block.data, block.mime_type))
            case "resource":
                texts.append(_clean(getattr(block.resource, "text", f"[A file: {block.resource.uri}]")))
            case "resource_link":
                texts.append(_clean(f"[A link: {block.uri}]"))
            case other:
                texts.append(_clean(f"[Left out: {other}]"))
    if not texts and structured is not None:
        texts.append(_clean(json.dumps(structured, ensure_ascii=False)))
    return ToolOutput("\n".join(texts), tuple(images))


def _clean(text: str) -> str:
    """Return a result as its operator would see it: no control characters, no invisible text, no role tokens."""
    return neutralise(_CONTROLS.sub("", storable_text(text)))


def _image(data: str, mime_type: str) -> ToolImage:
    try:
        return ToolImage(base64.b64decode(data, validate=True), mime_type)
    except binascii.Error:
        raise McpProblem("The tool returned an image that cannot be read.") from None
