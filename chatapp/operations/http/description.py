"""Describes the API for code generators: stable operation names, scopes, examples, headers, events, no odd defaults."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from functools import cache
from http import HTTPStatus
from typing import Any

from django.conf import settings
from ninja import NinjaAPI
from ninja.operation import Operation
from ninja.security import HttpBearer
from pydantic import TypeAdapter

from agents.events import Event
from chatapp.operations.http.examples import BODY_EXAMPLES, ERROR_EXAMPLES
from memory.bounds import MAX_ID_CHARS

Json = dict[str, Any]
IRREGULAR = {
    ("get", "/export"): "exportEverything",
    ("get", "/admin/usage"): "getUsageOfAll",
    ("get", "/admin/invitations"): "listInvitations",
    ("post", "/admin/invitations"): "createInvitation",
    ("delete", "/admin/invitations/{invitation_id}"): "deleteInvitation",
    ("post", "/admin/deployment"): "applyDeployment",
    ("post", "/conversations/{conversation_id}/messages"): "sendMessage",
    ("patch", "/conversations/{conversation_id}/messages/{message_id}"): "editMessage",
    ("post", "/conversations/{conversation_id}/inject"): "injectMessage",
    ("get", "/conversations/{conversation_id}/events"): "streamEvents",
    ("post", "/conversations/{conversation_id}/context"): "inspectContext",
    ("get", "/conversations/{conversation_id}/export"): "exportConversation",
    ("get", "/agents/{agent_id}/export"): "exportAgent",
    ("get", "/conversations/{conversation_id}/share"): "getShare",
    ("delete", "/conversations/{conversation_id}/share"): "deleteShare",
    ("get", "/shared/{token}"): "getSharedConversation",
    ("get", "/shared/{token}/images/{image}"): "getSharedImage",
    ("post", "/shared/{token}/copy"): "copySharedConversation",
    ("get", "/runs/{run_id}/trace"): "getRunTrace",
    ("post", "/runs/{run_id}/tools/{call_id}/approve"): "approveToolCall",
    ("post", "/runs/{run_id}/tools/{call_id}/deny"): "denyToolCall",
    ("get", "/conversations/{conversation_id}/offloads/{ref}/content"): "downloadOffload",
    ("post", "/files"): "uploadFile",
    ("delete", "/folders/{folder_id}/files/{file_id}"): "removeFolderFile",
    ("get", "/files/{file_id}"): "downloadFile",
    ("get", "/memory/search"): "searchMemory",
    ("get", "/memory/export"): "exportMemory",
    ("post", "/memory/forget"): "forget",
    ("post", "/memory/forget/propose"): "proposeForgetting",
    ("post", "/memory/forget/confirm"): "confirmForgetting",
    ("get", "/memory/forget/proposals/{proposal_id}"): "getForgetProposal",
    ("get", "/memory/not-learned"): "listNotLearned",
    ("delete", "/memory/not-learned/{receipt_id}"): "learnAgain",
    ("get", "/memory/review"): "listMemoryReview",
    ("post", "/memory/review/{entry_id}/approve"): "approveMemoryEntry",
    ("post", "/memory/review/{entry_id}/reject"): "rejectMemoryEntry",
    ("get", "/memory/shared"): "listSharedMemories",
    ("get", "/memory/shared/{agent_id}"): "listSharedEntries",
    ("get", "/memory/entries/{entry_id}/history"): "listMemoryEntryHistory",
    ("post", "/memory/entries/{entry_id}/revert"): "revertMemoryEntry",
    ("post", "/memory/profile/versions/{version}/revert"): "revertMemoryProfileVersion",
    ("delete", "/trash"): "emptyTrash",
    ("delete", "/trash/{conversation_id}"): "deleteFromTrash",
    ("post", "/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver"): "redeliverWebhook",
}
"""Names that `operation_name` cannot derive. They are part of the API, and not used to interpret text."""
VERBS = {"put": "replace", "patch": "update", "delete": "delete"}
SINGLE = frozenset({"settings", "stats"})
"""Names that end with s but are singular."""
TAGS = {
    "account": "The caller, tokens, models, usage, and all data of a user.",
    "agents": "Presets: a system prompt, a model, tools, hooks.",
    "conversations": "Conversations, their import and export.",
    "messages": "What is said in them: sent, edited, pinned, answered again.",
    "events": "What happens in a conversation, as server-sent events.",
    "runs": "Answers while they are written, and what they did.",
    "context": "What a model is sent, and its compaction.",
    "feedback": "Ratings of answers.",
    "prompts": "Texts kept to be used again.",
    "sharing": "Snapshots of conversations, behind a link.",
    "files": "Uploads.",
    "tools": "What agents may use, and large results.",
    "memory": "What is remembered, searched and forgotten.",
    "invitations": "Who may sign up, for operators.",
    "webhooks": "Addresses that are notified of events.",
}
HEADERS = {
    201: {"Location": "The address of the new object."},
    401: {"WWW-Authenticate": "Bearer"},
    429: {"Retry-After": "Seconds until the next request is accepted."},
    503: {"Retry-After": "Seconds until another attempt may succeed."},
}

IDEMPOTENCY_KEY: Json = {
    "in": "header",
    "name": "Idempotency-Key",
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_ID_CHARS},
    "description": "Within 24 hours, a repeat with the same key and body creates nothing and returns what the first "
    "request created, in its current state; with another body it fails with 422.",
}

TOLD_TO_WEBHOOKS: Json = {
    "operationId": "tellEvent",
    "summary": "Send event",
    "description": "What is sent to the address of a webhook, signed as described at standardwebhooks.com.",
    "tags": ["webhooks"],
    "security": [],
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["type", "timestamp", "data"],
                    "properties": {
                        "type": {"type": "string"},
                        "timestamp": {"type": "string", "format": "date-time"},
                        "data": {"$ref": "#/components/schemas/Event"},
                    },
                }
            }
        },
    },
    "responses": {
        "200": {"description": "Accepted. After any status other than 2xx the event is sent again."},
        "400": {"description": "Not accepted; the event is sent again."},
    },
}


def operation_name(method: str, path: str) -> str:
    """Return a name such as `createConversation`, from the method and the words of the path (without its prefix)."""
    if (method, path) in IRREGULAR:
        return IRREGULAR[method, path]
    words, is_item = _words(path), path.endswith("}")
    last = words[-1]
    if is_item:
        verb = "get" if method == "get" else VERBS[method]
        return verb + _joined(words, is_one=True)
    is_many = last.endswith("s") and last not in SINGLE
    if method == "get":
        return ("list" if is_many else "get") + _joined(words, is_one=not is_many)
    if method in VERBS:
        return VERBS[method] + _joined(words, is_one=True)
    if is_many:
        return "create" + _joined(words, is_one=True)
    return last + _joined(words[:-1], is_one=True)  # an action: /runs/{run_id}/stop


def _words(path: str) -> list[str]:
    """Return the words that name the resource, without parents that an id identifies."""
    segments = [segment for segment in path.split("/") if segment]
    words = [segment for segment in segments if not segment.startswith("{")]
    kept = [
        word
        for word, follower in zip(segments, [*segments[1:], ""], strict=True)
        if not word.startswith("{") and not (follower.startswith("{") and word != words[-1])
    ]
    is_action = len(kept) == 1 and len(words) > 1 and not kept[0].endswith("s")
    return [words[-2], words[-1]] if is_action else kept


def _joined(words: list[str], *, is_one: bool) -> str:
    named = [word.title().replace("-", "") for word in words]
    if is_one and named:
        named[-1] = _singular(named[-1])
    return "".join(named)


def _singular(word: str) -> str:
    if word.lower() in SINGLE or not word.endswith("s"):
        return word
    return word[:-3] + "y" if word.endswith("ies") else word[:-1]


def describe(api: NinjaAPI, prefix: str) -> Json:
    """Return the description to serve: complete, and without constructs that break generators."""
    schema = json.loads(json.dumps(api.get_openapi_schema(path_prefix=prefix), default=str))
    schema["info"] |= {
        "license": {"name": "MIT", "identifier": "MIT"},
        "contact": {"name": "Whoever operates this service"},
    }
    schema["servers"] = [{"url": settings.PUBLIC_URL or "/"}]
    schema["components"]["schemas"] |= _event_schemas()
    declared = dict(_operations(api))
    used = set()
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            short = path.removeprefix(prefix)
            ours = declared[method, short]
            _complete(operation, operation_name(method, short), _scopes_of(ours))
            if hasattr(ours.view_func, "creation"):  # declared with `creates`
                operation["parameters"] = [*operation.get("parameters", ()), IDEMPOTENCY_KEY]
            used |= set(operation.get("tags", ()))
    schema["tags"] = [{"name": name, "description": text} for name, text in TAGS.items() if name in used]
    schema["webhooks"] = {"event": {"post": TOLD_TO_WEBHOOKS}}
    complete: Json = _without_odd_defaults(schema)
    _drop_unused(complete)
    return complete


def _operations(api: NinjaAPI) -> Iterator[tuple[tuple[str, str], Operation]]:
    """Yield ((method, path), operation) for each method of each operation."""
    for _, router in api._routers:
        for path, view in router.path_operations.items():
            for operation in view.operations:
                yield from (((method.lower(), path), operation) for method in operation.methods)


def _scopes_of(operation: Operation) -> list[str]:
    """Return the scopes of which a token needs one."""
    guards = [guard for guard in operation.auth_callbacks if isinstance(guard, HttpBearer)]
    return sorted({name for guard in guards for name in getattr(guard, "scopes", ())})


def _complete(operation: Json, name: str, scopes: list[str]) -> None:
    operation["operationId"] = name
    operation["summary"] = _in_words(name)
    needs = f"Needs a token with the scope {' or '.join(f'`{scope}`' for scope in scopes)}." if scopes else ""
    told = operation.get("description") or f"{operation['summary']}."
    operation["description"] = f"{told}\n\n{needs}".strip()
    operation["x-scopes"] = scopes
    operation.setdefault("security", [])  # empty: no sign-in needed
    for status, response in operation["responses"].items():
        _complete_response(int(status), response)
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body is not None and name in BODY_EXAMPLES:
        body["example"] = BODY_EXAMPLES[name]


def _in_words(name: str) -> str:
    """Return `Create conversation` for `createConversation`."""
    spaced = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)
    return spaced[:1].upper() + spaced[1:]


def _complete_response(status: int, response: Json) -> None:
    response["description"] = HTTPStatus(status).phrase
    content = response.get("content", {}).get("application/json")
    if content is not None and status in ERROR_EXAMPLES:
        code, message = ERROR_EXAMPLES[status]
        content["example"] = {"error": {"code": code, "message": message}}
    headers = HEADERS.get(status)
    if headers:
        response["headers"] = {
            header: {"description": text, "schema": {"type": "string"}} for header, text in headers.items()
        }


def _event_schemas() -> Json:
    """Return the schemas of all events, under names that end with `Event`, and `Event`, their union."""
    template = "#/components/schemas/{model}Event"
    schema = TypeAdapter[Any](Event).json_schema(mode="serialization", ref_template=template)
    found: Json = {f"{name}Event": each for name, each in schema.pop("$defs").items()}
    for name, each in found.items():
        each["title"] = name
        if "type" in each["properties"]:  # every event has these, despite their defaults in the code
            each["required"] = sorted({"type", "v", *each.get("required", ())})
    return found | {
        "Event": {"title": "Event", "description": "The events of a stream, by `type`.", **schema}
    }


def _without_odd_defaults(value: Any) -> Any:
    """Return the value without defaults next to a reference, because generators read only one of the two."""
    if isinstance(value, list):
        return [_without_odd_defaults(item) for item in value]
    if not isinstance(value, dict):
        return value
    inner = value.get("allOf")
    if isinstance(inner, list) and len(inner) == 1 and "default" in value:
        return _without_odd_defaults(inner[0])
    kept = {name: item for name, item in value.items() if not (name == "default" and "$ref" in value)}
    return {name: _without_odd_defaults(item) for name, item in kept.items()}


def _drop_unused(schema: Json) -> None:
    """Remove unreferenced schemas, which ninja creates for query parameters."""
    schemas = schema["components"]["schemas"]
    # Repeat, because a removed schema may have been the only one to reference another.
    while unused := schemas.keys() - set(re.findall(r"#/components/schemas/([^\"]+)", json.dumps(schema))):
        for name in unused:
            del schemas[name]


@cache
def described(api: NinjaAPI, prefix: str) -> tuple[bytes, str]:
    """Return the description of an API as JSON and its ETag, cached because building it takes a second."""
    content = json.dumps(describe(api, prefix), ensure_ascii=False, separators=(",", ":")).encode()
    return content, f'"{hashlib.sha256(content).hexdigest()[:32]}"'
