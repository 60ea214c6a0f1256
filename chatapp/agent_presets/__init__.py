"""Agents as presets, declared hooks, MCP servers, YAML."""
