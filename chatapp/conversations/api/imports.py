"""Imports a conversation: up to 100,000 messages in one request, validated without a pydantic model for each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from ninja import Router, Status
from pydantic import ValidationError

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.idempotency import creates
from chatapp.conversations.access import accessible_conversation
from chatapp.conversations.actions.imports import ImportedMessage, import_conversation
from chatapp.conversations.schemas.conversations import Imported, ImportHead
from chatapp.conversations.schemas.messages import Message
from chatapp.operations import clock
from chatapp.operations.database.text import normalize_text
from chatapp.operations.errors import InvalidInput, TooLarge
from chatapp.operations.http.bodies import body_of, parse_json
from chatapp.operations.http.schemas import answers
from chatapp.providers.selectors import accessible_model
from memory.bounds import MAX_ID_CHARS, MAX_IMPORTED, MAX_TITLE_CHARS, was_possible

router = Router(tags=["conversations"])

ROLES = ("assistant", "system", "user")
MAX_REPORTED = 20

BODY_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["messages"],
    "properties": {
        "title": {"type": "string", "maxLength": MAX_TITLE_CHARS},
        "model": {"type": ["string", "null"], "maxLength": MAX_ID_CHARS},
        "messages": {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_IMPORTED,
            "items": {
                "type": "object",
                "required": ["role", "content"],
                "description": "Messages of an export are taken, too; of them these fields count.",
                "properties": {
                    "role": {"enum": list(ROLES)},
                    "content": {"type": "string"},
                    "created_at": {
                        "type": ["string", "null"],
                        "format": "date-time",
                        "description": "Not before 1970, nor more than a day in the future; without a zone it is UTC.",
                    },
                },
            },
        },
    },
}
# Messages of an export are accepted, too; their other fields are ignored.
MESSAGE_FIELDS = (
    BODY_SCHEMA["properties"]["messages"]["items"]["properties"].keys()
    | Message.model_fields.keys()
    | {"attachments", "branch"}
)
DESCRIBED = {"requestBody": {"required": True, "content": {"application/json": {"schema": BODY_SCHEMA}}}}


async def _again(request: ApiRequest, made: str, values: dict[str, Any]) -> Any:
    row = await sync_to_async(accessible_conversation)(request.auth.user, made)
    return Status(201, {"id": made, "message_count": row.next_position})


@router.post(
    "/conversations/import",
    auth=allow("chat"),
    response=answers(404, created=Imported),
    openapi_extra=DESCRIBED,
)
@creates(_again, "/conversations/{made}")
async def import_messages(request: ApiRequest) -> Any:
    """Import all the messages as a conversation, or none. `content` is a string, or parts of type text. A conversation
    that is too long for a context is summarised once you continue it; until then no model is called for it."""
    return Status(201, await sync_to_async(_import)(request))


def _import(request: ApiRequest) -> dict[str, Any]:
    body = body_of(request, parse_json)
    if not isinstance(body, dict):
        raise _invalid([("body", "is not an object")])
    if unknown := [name for name in body if name not in BODY_SCHEMA["properties"]]:
        raise _invalid([(name, "is not a field of an import") for name in unknown[:MAX_REPORTED]])
    head, now = _head(body), clock.now()
    messages = read_messages(body.get("messages"), now)
    # List it by the time of its last message; the clean-up counts from `kept_since`.
    columns: dict[str, Any] = {"last_activity_at": messages[-1].created_at or now, "kept_since": now}
    if head.model:
        columns["model"] = accessible_model(request.auth.user.pk, head.model)
    conversation = import_conversation(
        user=request.auth.user, messages=messages, now=now, title=head.title, columns=columns
    )
    return {"id": str(conversation.pk), "message_count": len(messages)}


def _head(body: dict[str, Any]) -> ImportHead:
    try:
        return ImportHead.model_validate({name: body[name] for name in ("title", "model") if name in body})
    except ValidationError as error:
        raise _invalid([(str(item["loc"][0]), item["msg"]) for item in error.errors()]) from None


def read_messages(raw: Any, now: datetime) -> list[ImportedMessage]:
    """Return the validated messages. Raise InvalidInput with the first problems, and TooLarge."""
    if not isinstance(raw, list) or not raw:
        raise _invalid([("messages", "must be a list of at least one message")])
    if len(raw) > MAX_IMPORTED:
        raise TooLarge(
            f"At most {MAX_IMPORTED:,} messages can be imported at once; use the command for more."
        )
    messages, problems = [], []
    for number, item in enumerate(raw):
        try:
            messages.append(_read_message(item, now))
        except WrongField as error:
            problems.append((f"messages.{number}.{error.field}".removesuffix("."), str(error)))
            if len(problems) == MAX_REPORTED:
                break
    if problems:
        raise _invalid(problems)
    return messages


class WrongField(ValueError):
    """An invalid field of a message; `field` is empty if the message is not an object."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def _read_message(item: Any, now: datetime) -> ImportedMessage:
    """Return one validated message. Raise WrongField."""
    if not isinstance(item, dict):
        raise WrongField("", "is not an object")
    if not item.keys() <= MESSAGE_FIELDS:
        raise WrongField(min(item.keys() - MESSAGE_FIELDS), "is not a field of an imported message")
    role = item.get("role")
    if role not in ROLES:
        raise WrongField("role", "must be user, assistant or system")
    text = _read_text(item.get("content"))
    return ImportedMessage(
        role, normalize_text(text, settings.MAX_MESSAGE_CHARS), _read_time(item.get("created_at"), now)
    )


def _read_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise WrongField("content", "must be a string or a list of text parts")
    texts = [
        part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
        for part in content
    ]
    if not all(isinstance(text, str) for text in texts):
        raise WrongField("content", "may only have parts of type text")
    return "\n".join(text for text in texts if text)


def _read_time(raw: Any, now: datetime) -> datetime | None:
    """Return the time, in UTC if it has no zone. Raise WrongField."""
    if raw is None:
        return None
    if not isinstance(raw, str):
        raise WrongField("created_at", "must be an ISO 8601 time")
    try:
        moment = datetime.fromisoformat(raw)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        # A time of the year 1 or 9999 may be out of range once converted to UTC.
        raise WrongField("created_at", "must be an ISO 8601 time") from None
    if not was_possible(moment, now):
        raise WrongField("created_at", "must not be before 1970, nor more than a day in the future")
    return moment


def _invalid(problems: Sequence[tuple[str, str]]) -> InvalidInput:
    details = [{"field": field, "message": message} for field, message in problems]
    return InvalidInput(f"{problems[0][0]}: {problems[0][1]}", details=details)
