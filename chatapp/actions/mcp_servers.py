"""Every write to MCP servers: by operators, and what the servers listed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q

from agents.mcp import McpToolFacts
from chatapp import jobs, secrets_box
from chatapp.models import McpServer

LIST_AGAIN_AFTER = timedelta(minutes=10)
LEARNED = ("tools", "listed_at", "asked_at", "problem")


def save_mcp_server(*, server: McpServer, headers: Mapping[str, str] | None = None) -> McpServer:
    """As edited by an operator. `headers` are write-only: None keeps the stored ones. Its tools are listed anew."""
    if headers is not None:
        server.headers_encrypted = secrets_box.encrypt(json.dumps(dict(headers)) if headers else "")
    server.asked_at = None
    former = McpServer.objects.filter(pk=server.pk).first()
    if former and former.url != server.url:
        server.tools, server.listed_at, server.problem = [], None, ""
    server.save()
    if server.enabled:
        jobs.wake_worker("list_mcp_tools", str(server.pk))
    return server


def claim_listing(*, server_id: UUID, now: datetime) -> bool:
    """Whether this caller is the one to ask the server now."""
    due = Q(asked_at=None) | Q(asked_at__lt=now - LIST_AGAIN_AFTER)
    return bool(McpServer.objects.filter(due, pk=server_id, enabled=True).update(asked_at=now))


def record_tools(*, server_id: UUID, tools: Sequence[McpToolFacts], now: datetime) -> None:
    listed = [asdict(facts) for facts in tools]
    McpServer.objects.filter(pk=server_id).update(tools=listed, listed_at=now, asked_at=now, problem="")


def record_problem(*, server_id: UUID, problem: str, now: datetime) -> None:
    """What it listed before stays: a server that is down for a minute keeps its tools."""
    McpServer.objects.filter(pk=server_id).update(problem=problem, asked_at=now)
