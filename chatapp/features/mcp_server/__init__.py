"""The MCP server at /mcp: memory and conversations of a token's user, for assistants of other makers."""
