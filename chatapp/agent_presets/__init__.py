"""Agents as presets, hooks declared for them, MCP servers, YAML."""
