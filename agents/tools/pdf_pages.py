"""The text of one PDF page, taken out in a process of its own: what hangs or swells on a hostile file is that process.

`python -m agents.tools.pdf_pages PAGE MEMORY_BYTES` reads a PDF from its input and writes one line of JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import resource
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agents.libraries import Library
from agents.tools.protocol import ToolFailure

if TYPE_CHECKING:
    import pypdf
else:
    pypdf = Library("pypdf")

CPU_S = 20
MEMORY_BYTES = 1 << 30
MAX_CHARS = 500_000
_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class PdfText:
    text: str
    page_count: int


async def read_pdf(data: bytes, page: int, *, memory_bytes: int = MEMORY_BYTES) -> PdfText:
    """Return the text of a page, counted from 1. Raise ToolFailure."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", __name__, str(page), str(memory_bytes)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=_ROOT,
        env={},
    )
    try:
        written, _ = await process.communicate(data)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    try:
        told = json.loads(written)
    except ValueError:
        raise ToolFailure("This PDF cannot be read; it is damaged, or too large.") from None
    if "problem" in told:
        raise ToolFailure(told["problem"])
    return PdfText(told["text"], told["page_count"])


def extract_page(data: bytes, page: int) -> dict[str, str | int]:
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
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


def main(page: int, memory_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    print(json.dumps(extract_page(sys.stdin.buffer.read(), page)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
