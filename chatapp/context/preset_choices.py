"""What this deployment offers to agents: tools, and the limits of context policies."""

from __future__ import annotations

from chatapp.agent_presets.services import Choices
from chatapp.context.policies import rules_for
from chatapp.context.tools.registry import local_tools, tool_names

CHOICES = Choices(
    tool_names=local_tools,
    hook_tool_names=tool_names,
    policy_limits=lambda model: rules_for(model).most,
)
