"""Answers with an archive that lies on disk, and cells of CSV files."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import IO

from django.http import StreamingHttpResponse

from chatapp.operations.database import in_database

CHUNK_BYTES = 2**18
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")


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


def plain_cell(text: str) -> str:
    """Return the text as a cell of a CSV file that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(FORMULA_SIGNS) else text
