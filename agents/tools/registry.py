"""The built-in tools by name, built on the ports that chatapp provides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agents.tools.attached_files import FilesList, FilesPort, FilesRead
from agents.tools.calculator import Calculator
from agents.tools.clock import Clock, ClockPort
from agents.tools.http_fetch import HttpFetch, WebPort
from agents.tools.memory_tools import (
    ConversationPort,
    ConversationSearch,
    MemoryPort,
    MemoryRead,
    MemorySearch,
)
from agents.tools.offloaded import OffloadGrep, OffloadPage, OffloadPort, OffloadViewImage
from agents.tools.protocol import Tool

TOOLS_READING_STORED_DATA = frozenset(
    tool.spec.name
    for tool in (
        MemorySearch,
        MemoryRead,
        ConversationSearch,
        FilesList,
        FilesRead,
        OffloadPage,
        OffloadGrep,
        OffloadViewImage,
    )
)
"""The tools that return copies of what is stored for the user already."""


def built_in_tools(
    *,
    memory: MemoryPort,
    conversation: ConversationPort,
    files: FilesPort,
    offloads: OffloadPort,
    web: WebPort,
    clock: ClockPort,
) -> Mapping[str, Tool]:
    """Return the tools on these ports, each of which gets the caller from the loop, never from a model."""
    return by_name(
        [
            MemorySearch(memory),
            MemoryRead(memory),
            ConversationSearch(conversation),
            FilesList(files),
            FilesRead(files),
            OffloadPage(offloads),
            OffloadGrep(offloads),
            OffloadViewImage(offloads),
            HttpFetch(web),
            Clock(clock),
            Calculator(),
        ]
    )


def by_name(tools: Iterable[Tool]) -> Mapping[str, Tool]:
    return {tool.spec.name: tool for tool in tools}
