"""Formats log lines as text or JSON, each with the id of its request or socket."""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import MutableMapping
from typing import Any, ClassVar

import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.types import Processor

from chatapp.operations.database.outages import is_outage
from chatapp.operations.telemetry import REQUEST_ID, client_address

REQUEST_ID_HEADER = b"x-request-id"
_USABLE_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
OUTAGE_LINE_S = 30.0
_LINKS = re.compile(
    r"(/setup/|/password/reset/key/|/confirm-email/|/s/|/shared/|[?&](?:invitation|code|state)=)[^\s/&'\"]+"
)


def build_formatter(is_json: bool) -> ProcessorFormatter:
    """Return the formatter of the handlers. Tracebacks contain no local variables, which may hold users' text."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso" if is_json else "%Y-%m-%d %H:%M:%S", utc=is_json),
    ]
    ending: list[Processor] = [
        _shortened,
        ProcessorFormatter.remove_processors_meta,
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(ensure_ascii=False) if is_json else _render_line,
    ]
    return ProcessorFormatter(processors=ending, foreign_pre_chain=shared)


def _shortened(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Remove secrets from requested links. Also remove tracebacks of refused requests, with which strangers could fill
    the disk."""
    event["event"] = _LINKS.sub(r"\1…", str(event["event"]))
    if str(event.get("logger", "")).startswith("django.security"):
        event.pop("exc_info", None)
    return event


def _render_line(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> str:
    level, request_id = event["level"].upper(), event.get(REQUEST_ID)
    mark = f" [{request_id}]" if request_id else ""
    lines = [f"{event['timestamp']} {level} {event['logger']}{mark}: {event['event']}"]
    return "\n".join([*lines, *(event[name] for name in ("exception", "stack") if event.get(name))])


class OutageLines(logging.Filter):
    """Logs an outage as one line without a traceback, at most once in OUTAGE_LINE_S for each place in the code.

    While the database is unavailable or the disk is full, every loop and request fails with the same traceback.
    """

    def __init__(self) -> None:
        super().__init__()
        self._written_at: dict[tuple[str, int], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is None or not (is_outage(error) or _is_of_the_broker(record, error)):
            return True
        words = str(error).strip().partition("\n")[0]
        said = record.getMessage().partition("\n")[0]  # beat adds its stack below
        # Without arguments, the message is not formatted again, so a "%" in it does no harm.
        record.msg, record.args = f"{said} ({type(error).__name__}: {words})", ()
        record.exc_info = record.exc_text = None
        place, now = (record.pathname, record.lineno), time.monotonic()
        if now - self._written_at.get(place, -OUTAGE_LINE_S) < OUTAGE_LINE_S:
            return False
        self._written_at[place] = now
        return True


def _is_of_the_broker(record: logging.LogRecord, error: BaseException) -> bool:
    """Return whether beat could not send a task. It runs none of our code, and raises its own error while it handles
    that of the connection."""
    cause: BaseException | None = error if record.name == "celery.beat" else None
    while cause is not None:
        if is_outage(cause):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


class ResponseLevelFilter(logging.Filter):
    """Sets the log level of a response according to its status.

    A 404 is information, because anybody can request anything. Failures of a provider and stopped answers are warnings:
    the user sees them, and our code is not wrong. Outages are logged separately.
    """

    LEVELS: ClassVar = {404: logging.INFO, **dict.fromkeys((502, 503, 504), logging.WARNING)}

    def filter(self, record: logging.LogRecord) -> bool:
        level = self.LEVELS.get(getattr(record, "status_code", 0))
        if level is not None:
            record.levelno, record.levelname = level, logging.getLevelName(level)
        # The logger has already compared the original level.
        return record.levelno >= logging.root.level


def name_requests(application: Any) -> Any:
    """Wrap the ASGI application so that each request or socket logs under an id and has a known client.

    The id is that of a valid `X-Request-Id` header, or random. HTTP responses contain it.
    """

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        request_id = _request_id(scope)
        structlog.contextvars.bind_contextvars(**{REQUEST_ID: request_id})
        client_address.set((scope.get("client") or ("",))[0])

        async def send_named(message: Any) -> None:
            if message["type"] == "http.response.start":
                named = (REQUEST_ID_HEADER, request_id.encode())
                message = {**message, "headers": [*message.get("headers", ()), named]}
            await send(message)

        await application(scope, receive, send if scope["type"] == "websocket" else send_named)

    return answer


def _request_id(scope: Any) -> str:
    given = next((value for name, value in scope.get("headers", ()) if name == REQUEST_ID_HEADER), b"")
    return given.decode() if _USABLE_ID.fullmatch(given) else secrets.token_hex(6)
