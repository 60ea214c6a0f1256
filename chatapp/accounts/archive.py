"""Everything of one user, to take away: a zip that other programs and people can read."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from tempfile import TemporaryFile
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZipFile

from agents.presets import write_preset
from chatapp.accounts.models import User
from chatapp.accounts.selectors import visible_tokens
from chatapp.agent_presets.presets import preset_of
from chatapp.conversations import export
from chatapp.conversations.export import json_pieces
from chatapp.conversations.models import Conversation
from chatapp.files import attachments, offloads
from chatapp.long_term import shapes as memory_shapes
from chatapp.long_term.archive import add_memory
from chatapp.long_term.models import MemoryEntry
from chatapp.operations import clock
from chatapp.operations.errors import InvalidInput, NotFound

README = """\
Everything Palimpsest stores of you, as it was at the time that account.json says.

account.json            who you are, and your settings
conversations/*.json    each conversation: `messages` is what it shows (POST /api/v1/conversations/import takes
                        it in), `other_versions` what was edited or answered anew, `compactions` its summaries
files/                  what you uploaded, by its id
offloaded/              results of tools that were too large for a context, by conversation
memory/                 MEMORY.md is your profile, the rest your days; entries.json and profile_versions.json
                        have their history, receipts.json what you had forgotten (not what it was)
agents/*.yaml           the agents you made
usage.csv               each call of a model
"""
_UNSAFE = re.compile(r"[^\w.-]+")
MAX_NAME_CHARS = 60


def write_account_archive(user: User) -> IO[bytes]:
    """Read from its beginning on. On disk, however much it is: one page, one file at a time is in memory."""
    archive = TemporaryFile()  # noqa: SIM115 - whoever sends it closes it
    with ZipFile(archive, "w", ZIP_DEFLATED) as files:
        files.writestr("README.txt", README)
        _write_json(files, "account.json", _account(user))
        for row in export.own_conversations(user):
            _write(files, f"conversations/{_conversation_name(row)}.json", json_pieces(row))
        _add_files(files, user)
        _add_memory(files, user)
        for agent in export.own_agents(user):
            _add_agent(files, agent)
        _write(files, "usage.csv", _usage_lines(user))
    archive.seek(0)
    return archive


def _write(files: ZipFile, name: str, pieces: Iterable[str]) -> None:
    with files.open(name, "w", force_zip64=True) as file:
        for piece in pieces:
            file.write(piece.encode("utf-8", "replace"))


def _write_json(files: ZipFile, name: str, content: Any) -> None:
    files.writestr(name, json.dumps(content, ensure_ascii=False, indent=1, default=str) + "\n")


def _account(user: User) -> dict[str, Any]:
    return {
        "format": "palimpsest-account",
        "version": 1,
        "exported_at": clock.now().isoformat(),
        "id": str(user.pk),
        "email": user.email,
        "name": user.name,
        "time_zone": user.time_zone,
        "created_at": user.date_joined.isoformat(),
        "memory": {
            "paused": user.memory_paused,
            "review": user.reviews_memory,
            "profile": user.uses_profile,
        },
        "tokens": [
            {"name": row.name, "scopes": row.scopes, "created_at": row.created_at.isoformat()}
            for row in visible_tokens(user)
        ],
    }


def _conversation_name(row: Conversation) -> str:
    """Told apart by its id, found by its title."""
    return f"{row.created_at.date().isoformat()} {_file_name(row.title or 'Conversation')} {row.pk}"


def _file_name(text: str) -> str:
    """Never a way out of its folder."""
    return (
        _UNSAFE.sub("-", PurePosixPath(text.replace("\\", "/")).name).strip("-.")[:MAX_NAME_CHARS] or "file"
    )


def _add_files(files: ZipFile, user: User) -> None:
    """What is gone from the disk is left out: its row is in its conversation."""
    for upload in export.own_attachments(user):
        path = attachments.content_path(upload.sha256)
        if path.exists():
            files.write(path, f"files/{upload.pk}-{_file_name(upload.name)}")
    for row in export.own_offloads(user):
        try:
            files.writestr(f"offloaded/{row.conversation_id}/{row.name}", offloads.read_content(row))
        except NotFound:
            continue


def _add_memory(files: ZipFile, user: User) -> None:
    add_memory(files, user.pk, "memory/")
    _write_json(files, "memory/entries.json", [_entry(row) for row in export.own_entries(user)])
    versions = [
        {"version": row.number, "author": row.author, "created_at": row.created_at, "markdown": row.text}
        for row in export.own_profile_versions(user)
    ]
    _write_json(files, "memory/profile_versions.json", versions)
    receipts = [{"what": row.what, "removed": row.removed, "at": row.at} for row in export.own_receipts(user)]
    _write_json(files, "memory/receipts.json", receipts)


def _entry(row: MemoryEntry) -> dict[str, Any]:
    earlier = [
        {"revision": said.number, "author": said.author, "written_at": said.written_at, "text": said.text}
        for said in row.revisions.all()
    ]
    return memory_shapes.entry_shape(row) | {"earlier": earlier}


def _add_agent(files: ZipFile, agent: Any) -> None:
    name = f"agents/{_file_name(agent.name)}-{agent.pk}.yaml"
    try:
        files.writestr(name, write_preset(preset_of(agent)))
    except InvalidInput as error:  # stored by an earlier version, and no preset any more
        files.writestr(f"{name}.txt", f"{error.message}\n\n{agent.system_prompt}\n")


def _usage_lines(user: User) -> Iterator[str]:
    yield ",".join(export.USAGE_COLUMNS) + "\n"
    for row in export.own_usage(user):
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow("" if value is None else value for value in row)
        yield line.getvalue()
