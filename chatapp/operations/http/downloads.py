"""Responses with an archive from disk, and cells of CSV files."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import IO

from django.http import StreamingHttpResponse

from chatapp.operations.database.threads import in_database

CHUNK_BYTES = 2**18
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")


def zip_download(archive: IO[bytes], name: str) -> StreamingHttpResponse:
    """Return the response that sends the zip and closes it."""
    response = StreamingHttpResponse(_chunks(archive), content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


async def _chunks(archive: IO[bytes]) -> AsyncGenerator[bytes, None]:
    # Also close it if the client disconnects, which ends the generator.
    with archive:
        while chunk := await in_database(archive.read)(CHUNK_BYTES):
            yield chunk


def plain_cell(text: str) -> str:
    """Return the text as a CSV cell that no spreadsheet interprets as a formula."""
    return f"'{text}" if text.startswith(FORMULA_SIGNS) else text
