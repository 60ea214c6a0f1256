"""The operators' panel, one subject a file. Importing it registers them all; the site itself is `admin_site`."""

from chatapp.admin import (
    accounts,
    agents,
    conversations,
    groups,
    hooks,
    mcp_servers,
    model_configs,
    shared_memory,
    usage,
)

__all__ = [
    "accounts",
    "agents",
    "conversations",
    "groups",
    "hooks",
    "mcp_servers",
    "model_configs",
    "shared_memory",
    "usage",
]
