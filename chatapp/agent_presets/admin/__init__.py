"""The admin pages of agents, hooks and MCP servers; importing this package registers them."""

from chatapp.agent_presets.admin import agents, hooks, mcp_servers

__all__ = ["agents", "hooks", "mcp_servers"]
