"""What was offloaded in the conversation that asks, which belongs to its user."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from agents.tools.offloaded import CONTEXT_REFERENCE, LIST_REFERENCE
from agents.tools.protocol import ToolCaller, ToolFailure, ToolImage
from chatapp.context.tools.branch_view import BranchView, view_of
from chatapp.files.models import Offload
from chatapp.files.offloads import ConversationOffloads, offloader, read_content
from chatapp.files.selectors import offload_of, offloads_of
from chatapp.operations.database import persistently
from chatapp.operations.errors import NotFound, Unavailable


class OwnOffloads:
    async def read_text(self, caller: ToolCaller, reference: str) -> str:
        return await persistently(_text)(caller, reference)

    async def read_image(self, caller: ToolCaller, reference: str) -> ToolImage:
        return await persistently(_image)(caller, reference)


def _text(caller: ToolCaller, reference: str) -> str:
    view = view_of(caller)
    if reference == LIST_REFERENCE:
        rows: Iterable[Offload] = offloads_of(caller.conversation_id)
        shown = view.offloads(rows) if view else rows
        return "\n".join(_line(row) for row in shown) or "Nothing was offloaded here."
    store = offloader()
    try:
        if isinstance(store, ConversationOffloads):
            is_context = _row(caller, reference, view).kind == Offload.Kind.CONTEXT
        else:
            _check_given(reference, view)
            is_context = False  # its form is the store's own
        # All of it: the tool searches it and cuts the pages by itself.
        text = store.read(caller.conversation_id, reference, limit=sys.maxsize)
    except (NotFound, Unavailable) as error:
        raise ToolFailure(error.message) from None
    return view.context_lines(text) if view and is_context else text


def _check_given(reference: str, view: BranchView | None) -> None:
    """Raise NotFound for what an operator's own store, of which there are no rows, keeps for another branch alone."""
    if view is not None and reference != CONTEXT_REFERENCE and not view.was_given(reference):
        raise NotFound("Nothing was offloaded here under this reference.")


def _row(caller: ToolCaller, reference: str, view: BranchView | None) -> Offload:
    """Raise NotFound, also for what only another branch was given."""
    row = offload_of(caller.conversation_id, reference)
    if view is not None and not list(view.offloads([row])):
        raise NotFound("Nothing was offloaded here under this reference.")
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
            raise ToolFailure("This is no image; read it by pages.")
        return ToolImage(read_content(row), row.mime_type)
    except (NotFound, Unavailable) as error:
        raise ToolFailure(error.message) from None
