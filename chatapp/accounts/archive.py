"""Writes the export of a user's data: a zip that people and other programs can read.

Each package contributes its part; this module writes the archive, and the part about the account itself.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZipFile

from allauth.socialaccount.models import SocialAccount

from chatapp.accounts.models import User
from chatapp.accounts.selectors import visible_tokens
from chatapp.operations import clock

README = """\
Everything Palimpsest stores about you, as of the time in account.json. POST /api/v1/imports, or Import in the
settings, imports this zip: conversations with their branches and summaries, the files they show, folders with
their files, entries, the profile, your agents and your prompts.

account.json            who you are, and your settings
conversations/*.json    each conversation: `messages` is what it shows (POST /api/v1/conversations/import
                        accepts it), `other_versions` edited and repeated ones, `compactions` its summaries
files/                  what you uploaded, by its id
offloaded/              results of tools that were too large for a context, by conversation
memory/                 MEMORY.md is your profile, the rest your days; entries.json and profile_versions.json
                        have their history, receipts.json your forget requests (without the text)
agents/*.yaml           the agents you made
folders.json            your folders, and which of your files are in them
prompts.json            your prompts
ratings.json            what you thought of answers
usage.csv               each call of a model
traces/                 how each answer was made, by conversation: calls of models and tools, and hooks
"""
_UNSAFE = re.compile(r"[^\w.-]+")
MAX_NAME_CHARS = 60

ArchiveFile = tuple[str, str | bytes | Path | Iterator[str]]
"""(name in the archive, content). A path is a file to copy; an iterator is written piece by piece."""
ArchivePart = Callable[[User], Iterable[ArchiveFile]]
_added: list[ArchivePart] = []
ArchiveTaker = Callable[[User, Iterable[Any]], Counter[str]]
"""Stores the items of one JSON file of an archive, and returns counts of the items that it skipped. It validates them
like user input, and does not duplicate existing ones."""
takers: dict[str, ArchiveTaker] = {}
"""Takers by name of the file in the archive."""


def adds_to_archive(part: ArchivePart) -> None:
    """Register a part of the archive. For features, which this package does not know."""
    _added.append(part)


def takes_from_archive(name: str, take: ArchiveTaker) -> None:
    """Register a feature's `take` for the file `name`, which imports pass to it."""
    takers[name] = take


def write_account_archive(user: User, parts: Sequence[ArchivePart]) -> IO[bytes]:
    """Return the archive as an open file on disk. Only one page or one file at a time is in memory."""
    files = (file for part in (account_files, *parts, *_added) for file in part(user))
    return write_archive(chain([("README.txt", README)], files))


def write_archive(files: Iterable[ArchiveFile]) -> IO[bytes]:
    """Return a zip of the files as an open file on disk."""
    archive = TemporaryFile()  # noqa: SIM115 - closed once it is sent
    with ZipFile(archive, "w", ZIP_DEFLATED) as zipped:
        for name, content in files:
            _write(zipped, name, content)
    archive.seek(0)
    return archive


def _write(files: ZipFile, name: str, content: str | bytes | Path | Iterator[str]) -> None:
    if isinstance(content, Path):
        files.write(content, name)
    elif isinstance(content, str):
        # One invalid character must not fail the whole archive.
        files.writestr(name, content.encode("utf-8", "replace"))
    elif isinstance(content, bytes):
        files.writestr(name, content)
    else:
        # The length is unknown when the header is written; without `force_zip64`, zipfile fails beyond 2 GiB.
        with files.open(name, "w", force_zip64=True) as file:
            for piece in content:
                file.write(piece.encode("utf-8", "replace"))


def json_file(content: Any) -> str:
    """Return a value as the text of a JSON file."""
    return json.dumps(content, ensure_ascii=False, indent=1, default=str) + "\n"


def safe_file_name(text: str) -> str:
    """Return a name without folders and special characters, so that unpacking stays inside the target folder."""
    # A backslash separates folders if the archive is unpacked on Windows.
    name = _UNSAFE.sub("-", PurePosixPath(text.replace("\\", "/")).name)
    return name.strip("-.")[:MAX_NAME_CHARS] or "file"


def account_files(user: User) -> Iterator[ArchiveFile]:
    account = {
        "format": "palimpsest-account",
        "version": 1,
        "exported_at": clock.now().isoformat(),
        "id": str(user.pk),
        "email": user.email,
        "name": user.name,
        "time_zone": user.time_zone,
        "created_at": user.date_joined.isoformat(),
        "settings": user.personal_settings(),
        "memory": {
            "paused": user.memory_paused,
            "review": user.reviews_memory,
            "profile": user.uses_profile,
        },
        "single_sign_on": [
            {"subject": row.uid, "claims": row.extra_data} for row in SocialAccount.objects.filter(user=user)
        ],
        "tokens": [
            {"name": row.name, "scopes": row.scopes, "created_at": row.created_at.isoformat()}
            for row in visible_tokens(user)
        ],
    }
    yield "account.json", json_file(account)
