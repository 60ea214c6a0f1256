"""The sweep's work for runs."""

from __future__ import annotations

from datetime import datetime

from chatapp.context.tools.registry import local_tools
from chatapp.runs import runner
from chatapp.runs.actions.endings import INTERRUPTED, interrupt_run
from chatapp.runs.actions.hooks import close_abandoned_calls
from chatapp.runs.actions.runs import extend_expired_lease_once
from chatapp.runs.selectors import dead_runs

CALL_TIMEOUT_S = 900.0
"""Longer than the ten minutes that a call of an MCP server may take."""


def end_abandoned(now: datetime) -> None:
    """End the runs and tool calls whose process is gone.

    Queued runs are left to the web processes, which adopt them after a restart or give up on them.
    """
    for run_id, fence in dead_runs(now):
        if not runner.is_answering(run_id) and not extend_expired_lease_once(
            run_id=run_id, fence=fence, now=now
        ):
            interrupt_run(run_id=run_id, fence=fence, now=now, message=INTERRUPTED, only_expired=True)
    close_abandoned_calls(now=now, timeout_s=_call_timeout_s)


def _call_timeout_s(tool_name: str) -> float:
    """Return how long a call may be open, including the timeout of an operator's own tool."""
    tool = local_tools().get(tool_name)
    return CALL_TIMEOUT_S + (tool.traits.timeout_s if tool else 0.0)
