"""Lists the tools of MCP servers, and builds tools from these lists."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from uuid import UUID

from agents.tools.mcp import McpEndpoint, McpListing, McpProblem, McpTool, list_tools, offer_tools
from chatapp.agent_presets.actions import claim_listing, record_problem, record_tools
from chatapp.agent_presets.models import McpServer
from chatapp.agent_presets.selectors import listed_facts, waiting_tools
from chatapp.operations import clock, encryption
from chatapp.providers.chat_models import ask_in_thread
from chatapp.providers.model_check import Check

log = logging.getLogger(__name__)

NO_HEADERS = "Its stored headers can no longer be read; an operator has to enter them again."


def endpoint_of(server: McpServer) -> McpEndpoint:
    """Return the endpoint with its headers, decrypted. Raise SecretUnreadable."""
    stored = encryption.decrypt(server.headers_encrypted)
    return McpEndpoint(
        name=server.name,
        url=server.url,
        headers=json.loads(stored) if stored else {},
        is_own=server.is_own,
        timeout_s=server.timeout_s,
    )


def offered_tools(server: McpServer) -> list[McpTool]:
    """Return the tools that the server listed last and that are approved; none if its headers cannot be decrypted."""
    try:
        endpoint = endpoint_of(server)
    except encryption.SecretUnreadable:
        log.error("The MCP server %s is left out. %s", server.name, NO_HEADERS)
        return []
    waiting = waiting_tools(server)
    listed = (facts for facts in listed_facts(server) if facts.name not in waiting)
    chosen = [facts for facts in listed if not server.tool_filter or facts.name in server.tool_filter]
    return offer_tools(endpoint, chosen, needs_consent=server.needs_consent)


def check_server(server: McpServer) -> Check:
    """List the server's tools and store the result. Blocks until the server responds or times out."""
    try:
        listing = ask_in_thread(list_tools(endpoint_of(server)))
    except encryption.SecretUnreadable:
        check = Check(False, NO_HEADERS)
    except McpProblem as problem:
        check = Check(False, str(problem))
    else:
        record_tools(server=server, tools=listing.tools, now=clock.now())
        # Storing a first list has also approved it.
        server.refresh_from_db(fields=["tools", "approved_tools"])
        return Check(True, _describe(listing, waiting_tools(server)))
    record_problem(server=server, problem=check.text, now=clock.now())
    return check


def _describe(listing: McpListing, waiting: Sequence[str]) -> str:
    names = ", ".join(facts.name for facts in listing.tools) or "none"
    sentences = ["It answers.", f"Its tools: {names}."]
    if listing.left_out:
        names = ", ".join(listing.left_out)
        sentences.append(
            f"Left out, because their schemas or names cannot be used or hide something: {names}."
        )
    if waiting:
        sentences.append(f"Not offered until you approve what changed: {', '.join(waiting)}.")
    return " ".join(sentences)


def refresh_server(server_id: UUID) -> None:
    """List the server's tools, unless another worker has just done so."""
    if claim_listing(server_id=server_id, now=clock.now()):
        server = McpServer.objects.filter(pk=server_id).first()
        if server is not None:
            check_server(server)
