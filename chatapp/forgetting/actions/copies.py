"""Take out what runs copied of a text: tool calls and their stored results, plans, and what requests hold of their own.

Events and requests refer to the texts of rows, and need none of this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from agents.manifest import OwnText, read_manifest
from agents.tools.registry import READING_WHAT_IS_KEPT
from chatapp.context.models import RequestText, SentRequest
from chatapp.conversations import message_values
from chatapp.files.actions import delete_stored_results
from chatapp.operations.statements import update_rows
from chatapp.runs.models import Run, ToolCall

NOTHING_SAID = ("system", "tools")
"""The sources of request texts that hold nothing that was said."""
Parts = list[dict[str, Any]]


def without_copies(parts: Parts, is_copy: Callable[[str], bool]) -> Parts:
    """Return the parts of a message whose run has read it: what was answered stays."""
    return [_without_copy(part, is_copy) for part in parts]


def _without_copy(part: dict[str, Any], is_copy: Callable[[str], bool]) -> dict[str, Any]:
    match part["type"]:
        case "tool_result" if part.get("name") in READING_WHAT_IS_KEPT or is_copy(part["text"]):
            return {**part, "text": "", "offload_ref": None} if part["text"] else part
        case "tool_call" if is_copy(part["arguments"]):
            return {**part, "arguments": "{}"}
        case "reasoning" if is_copy(part["text"]):
            return {**part, "text": ""}
    return part


def blank_runs(
    read: Collection[UUID], answering: Collection[UUID], is_copy: Callable[[str], bool]
) -> list[Mapping[str, Any]]:
    """Blank all that runs `answering` forgotten messages planned, asked tools and were returned, and of the runs that
    have `read` something forgotten what repeats it. Return the tool results that are gone."""
    own = ToolCall.objects.filter(run__in=answering)
    returned = [part for result in own.values_list("result", flat=True) for part in result]
    own.update(arguments="{}", result=[])
    Run.objects.filter(pk__in=answering).update(plan=None, error_detail="")
    copying = calls_telling(read, is_copy)
    for call in copying:
        returned += call.result
        call.arguments, call.result = "{}", []
    update_rows(copying, "arguments", "result")
    planned = [run for run in Run.objects.filter(pk__in=read) if run.plan or run.error_detail]
    for run in planned:
        run.plan = None if is_copy(str(run.plan or "")) else run.plan
        run.error_detail = ""
    update_rows(planned, "plan", "error_detail")
    return [part for part in returned if part["type"] == "tool_result"]


def calls_telling(run_ids: Collection[UUID], is_copy: Callable[[str], bool]) -> list[ToolCall]:
    """Return the calls of these runs that tell of it."""
    return [call for call in ToolCall.objects.filter(run__in=run_ids) if _tells(call, is_copy)]


def _tells(call: ToolCall, is_copy: Callable[[str], bool]) -> bool:
    asked_or_got = (call.arguments, *message_values.results_in(call.result))
    return call.name in READING_WHAT_IS_KEPT or is_copy("\n".join(asked_or_got))


def delete_stored_copies(
    conversation_ids: Collection[UUID], returned: Iterable[Mapping[str, Any]]
) -> list[tuple[UUID, str]]:
    """Delete what is stored of results that are `returned` no more. Return which files nothing needs now.

    An image, or what was shortened later to make room, is named by no result: all such of these tools go.
    """
    parts = list(returned)
    gone = {str(part["offload_ref"]) for part in parts if part.get("offload_ref")}
    tools = {str(part["name"]) for part in parts if part.get("name")}
    if not parts:
        return []
    calls = ToolCall.objects.filter(run__conversation__in=conversation_ids, name__in=tools)
    stored = [part for result in calls.values_list("result", flat=True) for part in result]
    left = {str(part["offload_ref"]) for part in stored if part.get("text") and part.get("offload_ref")}
    return delete_stored_results(conversation_ids, tools, gone=gone, left=left)


def request_texts(conversation_ids: Collection[UUID]) -> QuerySet[RequestText]:
    """Return the texts of these conversations' requests that hold what was said and that no row holds."""
    return RequestText.objects.filter(conversation__in=conversation_ids).exclude(source__in=NOTHING_SAID)


def texts_of_runs(run_ids: Collection[UUID]) -> QuerySet[RequestText]:
    """Return the texts that only the requests of these runs hold."""
    requests = SentRequest.objects.filter(run__in=run_ids).values_list("run__conversation", "manifest")
    hashes: dict[UUID, set[str]] = {}
    for home, manifest in requests:
        own = [piece for piece in read_manifest(manifest).pieces if isinstance(piece, OwnText)]
        hashes.setdefault(home, set()).update(piece.text_sha256 for piece in own)
    named = Q(pk=None)
    for home, some in hashes.items():
        named |= Q(conversation=home, sha256__in=some)
    return RequestText.objects.filter(named).exclude(source__in=NOTHING_SAID)


def sent_profiles(user_id: UUID) -> QuerySet[RequestText]:
    """Return what requests hold of the user's profile."""
    return RequestText.objects.filter(conversation__user=user_id, source="profile")
