"""The MCP server at /mcp: gives other assistants access to the memory and conversations of a token's user."""
