"""The built-in tools by name, made of what chatapp lends them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agents.tools.calculator import Calculator
from agents.tools.clock import Clock, ClockPort
from agents.tools.offloaded import OffloadGrep, OffloadPage, OffloadPort, OffloadViewImage
from agents.tools.protocol import Tool


@dataclass(frozen=True, slots=True)
class Ports:
    """The world as tools may see it. Every port is told who asks; none takes that from a model."""

    clock: ClockPort
    offloads: OffloadPort


def built_in_tools(ports: Ports) -> Mapping[str, Tool]:
    return by_name(
        [
            Clock(ports.clock),
            Calculator(),
            OffloadPage(ports.offloads),
            OffloadGrep(ports.offloads),
            OffloadViewImage(ports.offloads),
        ]
    )


def by_name(tools: Iterable[Tool]) -> Mapping[str, Tool]:
    return {tool.spec.name: tool for tool in tools}
