"""Files that the user attached to messages of the conversation that asks."""

from __future__ import annotations

from collections.abc import Sequence

from agents.tools.attached_files import FileContent, FileFacts
from agents.tools.protocol import ToolCaller, ToolFailure
from chatapp.files.attachments import read_content
from chatapp.files.models import Attachment
from chatapp.files.selectors import attached_files
from chatapp.operations.database import persistently


class AttachedFiles:
    async def list_files(self, caller: ToolCaller) -> Sequence[FileFacts]:
        rows = await persistently(attached_files)(caller.user_id, caller.conversation_id)
        return [_facts(row) for row in rows]

    async def read_file(self, caller: ToolCaller, file_id: str) -> FileContent:
        return await persistently(_read)(caller, file_id)


def _read(caller: ToolCaller, file_id: str) -> FileContent:
    rows = attached_files(caller.user_id, caller.conversation_id)
    row = next((row for row in rows if str(row.pk) == file_id), None)
    if row is None:
        raise ToolFailure("No such file is attached to this conversation.")
    try:
        return FileContent(_facts(row), read_content(row))
    except FileNotFoundError:
        raise ToolFailure("The content of this file is gone.") from None


def _facts(row: Attachment) -> FileFacts:
    return FileFacts(str(row.pk), row.name, row.mime_type, row.size_bytes)
