"""Configuration by operators in one file: models, MCP servers, agents, hooks and groups (`manage.py apply`)."""
