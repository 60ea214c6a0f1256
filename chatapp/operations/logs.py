"""How log lines are written: as text or as JSON, each with the id of the request or socket it belongs to."""

from __future__ import annotations

import secrets
from collections.abc import MutableMapping
from typing import Any

import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.types import Processor

REQUEST_ID = "request_id"


def build_formatter(is_json: bool) -> ProcessorFormatter:
    """Return the formatter of the handlers. Tracebacks carry no local variables, which hold what users wrote."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso" if is_json else "%Y-%m-%d %H:%M:%S", utc=is_json),
    ]
    ending: list[Processor] = [
        ProcessorFormatter.remove_processors_meta,
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(ensure_ascii=False) if is_json else _render_line,
    ]
    return ProcessorFormatter(processors=ending, foreign_pre_chain=shared)


def _render_line(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> str:
    level, request_id = event["level"].upper(), event.get(REQUEST_ID)
    mark = f" [{request_id}]" if request_id else ""
    lines = [f"{event['timestamp']} {level} {event['logger']}{mark}: {event['event']}"]
    return "\n".join([*lines, *(event[name] for name in ("exception", "stack") if event.get(name))])


def name_requests(application: Any) -> Any:
    """Return the ASGI application, which logs under a new id whatever a request or socket starts."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        structlog.contextvars.bind_contextvars(**{REQUEST_ID: secrets.token_hex(6)})
        await application(scope, receive, send)

    return answer
