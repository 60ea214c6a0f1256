"""Files that the user attached to messages of the calling conversation."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from agents.tools.attached_files import FileContent, FileFacts
from agents.tools.protocol import ToolCaller, ToolFailure
from chatapp.context.tools.branch_view import view_of
from chatapp.files.attachments import read_content
from chatapp.files.models import Attachment
from chatapp.files.selectors import attached_files, messages_showing
from chatapp.operations.database.threads import retry_on_outage
from chatapp.recall.actions.sources import note_read


class AttachedFiles:
    async def list_files(self, caller: ToolCaller) -> Sequence[FileFacts]:
        return await retry_on_outage(_list)(caller)

    async def read_file(self, caller: ToolCaller, file_id: str) -> FileContent:
        return await retry_on_outage(_read)(caller, file_id)


def _list(caller: ToolCaller) -> list[FileFacts]:
    rows = _shown(caller)
    _note(caller, rows)
    return [_facts(row) for row in rows]


def _read(caller: ToolCaller, file_id: str) -> FileContent:
    row = next((row for row in _shown(caller) if str(row.pk) == file_id), None)
    if row is None:
        raise ToolFailure("No such file is attached to this conversation.")
    _note(caller, [row])
    try:
        return FileContent(_facts(row), read_content(row))
    except FileNotFoundError:
        raise ToolFailure("The content of this file no longer exists.") from None


def _shown(caller: ToolCaller) -> list[Attachment]:
    view = view_of(caller)
    return attached_files(caller.user_id, caller.conversation_id, view.branch if view else None)


def _note(caller: ToolCaller, rows: Collection[Attachment]) -> None:
    """Note the files and the messages that show them: forgetting one of these deletes what the run read, too."""
    note_read(caller.run_id, [*(row.pk for row in rows), *messages_showing(rows, caller.conversation_id)])


def _facts(row: Attachment) -> FileFacts:
    return FileFacts(str(row.pk), row.name, row.mime_type, row.size_bytes)
