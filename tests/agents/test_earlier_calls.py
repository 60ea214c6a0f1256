"""Tool calls that an earlier attempt at the same question completed are not repeated."""

from __future__ import annotations

from agents.loop.tool_calls import CallChecker, call_key
from agents.loop.tool_running import run_calls
from agents.tools.protocol import ResultLimit, ToolTraits
from tests.agents.tooling import FakeTool, World


async def test_a_completed_call_with_an_empty_result_is_not_reported_as_interrupted():
    """An empty result is known: only None means unknown. Otherwise the model would report to the user that the mail may
    or may not have been sent."""
    tool = FakeTool("send_mail", traits=ToolTraits(is_idempotent=False))
    prepared = CallChecker([tool]).prepare([("send_mail", '{"to": "ann"}')], 1)
    use = World().use(tool, earlier={call_key("send_mail", '{"to": "ann"}'): ""})
    [result] = [one async for one in run_calls(prepared, use, ResultLimit(1_000, 4_000))]
    assert tool.calls == []
    assert result.state == "done"
    assert "may or may not" not in result.part.text
