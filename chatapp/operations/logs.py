"""How log lines are written: as text or as JSON, each with the id of the request or socket it belongs to."""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import MutableMapping
from contextvars import ContextVar
from typing import Any, ClassVar

import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.types import Processor

from chatapp.operations.outages import is_outage

REQUEST_ID = "request_id"
REQUEST_ID_HEADER = b"x-request-id"
_USABLE_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
OUTAGE_LINE_S = 30.0
_LINKS = re.compile(
    r"(/setup/|/password/reset/key/|/confirm-email/|/s/|/shared/|[?&](?:invitation|code|state)=)[^\s/&'\"]+"
)

client_address: ContextVar[str] = ContextVar("client_address", default="")
"""Of the request or socket that is being served, for the audit log. Empty in commands and tasks."""


def build_formatter(is_json: bool) -> ProcessorFormatter:
    """Return the formatter of the handlers. Tracebacks carry no local variables, which hold what users wrote."""
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
    """Return the line without the secret of a link that somebody asked for, and without the trace of a refusal, with
    which strangers could fill the disk."""
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
    """Writes what an outage causes as one line without a trace, and from one place at most every OUTAGE_LINE_S.

    While the database is away or the disk full, every loop and request fails, and each trace would say the same.
    """

    def __init__(self) -> None:
        super().__init__()
        self._written_at: dict[tuple[str, int], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is None or not (is_outage(error) or _is_of_the_broker(record, error)):
            return True
        words = str(error).strip().partition("\n")[0]
        said = record.getMessage().partition("\n")[0]  # beat writes its stack below
        # Without arguments the words are not formatted again: a "%" in them does no harm.
        record.msg, record.args = f"{said} ({type(error).__name__}: {words})", ()
        record.exc_info = record.exc_text = None
        place, now = (record.pathname, record.lineno), time.monotonic()
        if now - self._written_at.get(place, -OUTAGE_LINE_S) < OUTAGE_LINE_S:
            return False
        self._written_at[place] = now
        return True


def _is_of_the_broker(record: logging.LogRecord, error: BaseException) -> bool:
    """Return whether beat could not send a task, which it tells by an error of its own raised amid that of the
    connection. It runs no code of ours."""
    cause: BaseException | None = error if record.name == "celery.beat" else None
    while cause is not None:
        if is_outage(cause):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


class LevelsOfAnswers(logging.Filter):
    """Gives the line of an answer the level that its status deserves.

    What was not found is information: anybody can ask for anything. What a provider failed at, and an answer that was
    stopped, are warnings: the user is told, and no code of ours is wrong. An outage has lines of its own.
    """

    LEVELS: ClassVar = {404: logging.INFO, **dict.fromkeys((502, 503, 504), logging.WARNING)}

    def filter(self, record: logging.LogRecord) -> bool:
        level = self.LEVELS.get(getattr(record, "status_code", 0))
        if level is not None:
            record.levelno, record.levelname = level, logging.getLevelName(level)
        # The logger has compared the former level.
        return record.levelno >= logging.root.level


def name_requests(application: Any) -> Any:
    """Return the ASGI application, which logs under an id what a request or socket starts, and knows its client.

    The id is that of the request's `X-Request-Id`, where it has a usable one, and the answer carries it.
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
