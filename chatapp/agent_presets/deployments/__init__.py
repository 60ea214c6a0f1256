"""What operators configure, in one file: models, MCP servers, agents, hooks and groups (`manage.py apply`)."""
