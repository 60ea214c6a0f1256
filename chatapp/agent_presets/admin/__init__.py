"""The pages of the admin panel for agents, hooks and MCP servers; importing it registers them."""

from chatapp.agent_presets.admin import agents, hooks, mcp_servers

__all__ = ["agents", "hooks", "mcp_servers"]
