"""Extract the text of one PDF page, in a subprocess."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from agents.libraries import Library
from agents.tools.in_subprocess import MEMORY_BYTES, read_in_subprocess, write_result

if TYPE_CHECKING:
    import pypdf
else:
    pypdf = Library("pypdf")

MAX_CHARS = 500_000


async def read_pdf(data: bytes, page: int, *, memory_bytes: int = MEMORY_BYTES) -> str:
    """Return the text of a page, counted from 1, below a line that says which it is. Raise ToolFailure."""
    result = await read_in_subprocess(__name__, str(page), data, what="PDF", memory_bytes=memory_bytes)
    text = result["text"].strip() or "(This page has no text; it may be a scan.)"
    return f"Page {page} of {result['page_count']}.\n\n{text}"


def extract_page(data: bytes, wanted: str) -> dict[str, str | int]:
    page = int(wanted)
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        # Many PDFs are encrypted with an empty password, so that every reader opens them.
        if reader.is_encrypted and not reader.decrypt(""):
            return {"problem": "This PDF is protected by a password."}
        count = len(reader.pages)
        if page > count:
            return {"problem": f"There are only {count} pages."}
        return {"text": reader.pages[page - 1].extract_text()[:MAX_CHARS], "page_count": count}
    except (
        pypdf.errors.PyPdfError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        OSError,
    ):
        return {"problem": "This PDF cannot be read; it is damaged."}


if __name__ == "__main__":
    write_result(extract_page)
