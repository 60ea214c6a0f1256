"""Offloads of the calling conversation, which belongs to its user."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from agents.tools.offloaded import CONTEXT_REFERENCE, LIST_REFERENCE
from agents.tools.protocol import ToolCaller, ToolFailure, ToolImage
from chatapp.context.tools.branch_view import BranchView, view_of
from chatapp.files.models import Offload
from chatapp.files.offloads import ConversationOffloads, lines_of_context, offloader, read_content
from chatapp.files.selectors import offload_of, offloads_of
from chatapp.operations.database.access import parse_id
from chatapp.operations.database.threads import retry_on_outage
from chatapp.operations.errors import NotFound, Unavailable
from chatapp.recall.actions.sources import note_read
from chatapp.runs.models import Run, RunSource, ToolCall


class OwnOffloads:
    async def read_text(self, caller: ToolCaller, reference: str) -> str:
        return await retry_on_outage(_text)(caller, reference)

    async def read_image(self, caller: ToolCaller, reference: str) -> ToolImage:
        return await retry_on_outage(_image)(caller, reference)


def _text(caller: ToolCaller, reference: str) -> str:
    view = view_of(caller)
    if reference == LIST_REFERENCE:
        rows: Iterable[Offload] = offloads_of(caller.conversation_id)
        shown = view.offloads(rows) if view else rows
        return "\n".join(_line(row) for row in shown) or "Nothing was offloaded in this conversation."
    store = offloader()
    try:
        if isinstance(store, ConversationOffloads):
            row = _row(caller, reference, view)
        else:
            _check_given(reference, view)
            row = None  # only the store knows the format of the reference
        # Read all of it: the tool itself searches it and splits it into pages.
        text = store.read(caller.conversation_id, reference, limit=sys.maxsize)
    except (NotFound, Unavailable) as error:
        raise ToolFailure(error.message) from None
    if row is not None and row.kind == Offload.Kind.CONTEXT:
        text = view.context_lines(text) if view else text
        note_read(caller.run_id, [parse_id(message_id) for message_id, _ in lines_of_context(text)])
    elif row is not None:
        _note_result(caller, row)
    return text


def _note_result(caller: ToolCaller, row: Offload) -> None:
    """Note the sources behind a result that the run has read: the questions it was made for, and what was read for it.
    A result shortened later does not name its call, so all earlier calls of the same tool count."""
    calls = ToolCall.objects.filter(run__conversation=row.conversation_id, requested_at__lte=row.created_at)
    # A long tool name is stored truncated.
    runs = Run.objects.filter(pk__in=calls.filter(name__startswith=row.tool_name).values("run"))
    asked = runs.exclude(question=None).values_list("question", flat=True)
    read = RunSource.objects.filter(run__in=runs).values_list("source_id", flat=True)
    note_read(caller.run_id, [*asked, *read])


def _check_given(reference: str, view: BranchView | None) -> None:
    """Raise NotFound if only another branch got this reference of an operator's own store, which has no rows."""
    if view is not None and reference != CONTEXT_REFERENCE and not view.was_given(reference):
        raise NotFound("Nothing is stored under this reference in this conversation.")


def _row(caller: ToolCaller, reference: str, view: BranchView | None) -> Offload:
    """Return the offload. Raise NotFound, also if it belongs to another branch."""
    row = offload_of(caller.conversation_id, reference)
    if view is not None and not list(view.offloads([row])):
        raise NotFound("Nothing is stored under this reference in this conversation.")
    return row


def _line(row: Offload) -> str:
    reference = CONTEXT_REFERENCE if row.kind == Offload.Kind.CONTEXT else row.pk
    return (
        f"{reference}  {row.tool_name or row.name}  {row.size_bytes:,} bytes  {row.created_at:%Y-%m-%d %H:%M}"
    )


def _image(caller: ToolCaller, reference: str) -> ToolImage:
    try:
        row = _row(caller, reference, view_of(caller))
        if row.kind != Offload.Kind.IMAGE:
            raise ToolFailure("This is not an image; read it page by page.")
        image = ToolImage(read_content(row), row.mime_type)
    except (NotFound, Unavailable) as error:
        raise ToolFailure(error.message) from None
    _note_result(caller, row)
    return image
