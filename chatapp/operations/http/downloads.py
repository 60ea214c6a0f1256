"""Answers with an archive that lies on disk."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import IO

from django.http import StreamingHttpResponse

from chatapp.operations.database import in_database

CHUNK_BYTES = 2**18


def zip_download(archive: IO[bytes], name: str) -> StreamingHttpResponse:
    """Return the answer that sends the zip and closes it."""
    response = StreamingHttpResponse(_chunks(archive), content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


async def _chunks(archive: IO[bytes]) -> AsyncGenerator[bytes, None]:
    # Closed also where the client leaves in the middle, which ends the generator.
    with archive:
        while chunk := await in_database(archive.read)(CHUNK_BYTES):
            yield chunk
