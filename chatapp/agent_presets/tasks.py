"""Background tasks that list the tools of MCP servers."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from celery import shared_task

from chatapp.agent_presets.actions import LIST_AGAIN_AFTER
from chatapp.agent_presets.mcp_servers import refresh_server
from chatapp.agent_presets.selectors import servers_to_list
from chatapp.operations.workers.jobs import wake_worker


@shared_task
def list_mcp_tools(server_id: str) -> None:
    refresh_server(UUID(server_id))


def wake_waiting(now: datetime) -> None:
    for server_id in servers_to_list(now - LIST_AGAIN_AFTER):
        wake_worker("chatapp.agent_presets.tasks.list_mcp_tools", str(server_id))
