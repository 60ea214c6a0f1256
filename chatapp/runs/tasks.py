"""The sweep's work for runs."""

from __future__ import annotations

from datetime import datetime

from chatapp.context.tools.registry import local_tools
from chatapp.runs.actions.hooks import close_abandoned_calls
from chatapp.runs.runner import end_dead_runs

CALL_TIMEOUT_S = 900.0
"""Longer than the ten minutes that a call of an MCP server may take."""


def end_abandoned(now: datetime) -> None:
    """End the runs and tool calls whose process is gone.

    Queued runs are left to the web processes, which adopt them after a restart or give up on them.
    """
    end_dead_runs(now)
    close_abandoned_calls(now=now, timeout_s=_call_timeout_s)


def _call_timeout_s(tool_name: str) -> float:
    """Return how long a call may be open, including the timeout of an operator's own tool."""
    tool = local_tools().get(tool_name)
    return CALL_TIMEOUT_S + (tool.traits.timeout_s if tool else 0.0)
