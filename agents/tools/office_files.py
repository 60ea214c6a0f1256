"""The text of Word, Excel and PowerPoint files, taken out in a process of its own."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from agents.libraries import Library
from agents.tools.in_subprocess import MEMORY_BYTES, read_in_subprocess, write_result

if TYPE_CHECKING:
    import docx
    import openpyxl
    import pptx
    from docx import table
    from docx.table import Table
else:
    docx, openpyxl, pptx = Library("docx"), Library("openpyxl"), Library("pptx")
    table = Library("docx.table")

_OPEN_XML = "application/vnd.openxmlformats-officedocument"
DOCX = f"{_OPEN_XML}.wordprocessingml.document"
XLSX = f"{_OPEN_XML}.spreadsheetml.sheet"
PPTX = f"{_OPEN_XML}.presentationml.presentation"
MAX_CHARS = 2_000_000
MAX_UNPACKED_BYTES = 200_000_000
MAX_COLUMNS = 500


async def read_office(data: bytes, mime_type: str, *, memory_bytes: int = MEMORY_BYTES) -> str:
    """Return the text of the file, of one too long its beginning. Raise ToolFailure."""
    result = await read_in_subprocess(__name__, mime_type, data, what="file", memory_bytes=memory_bytes)
    return str(result["text"])


def extract_text(data: bytes, mime_type: str) -> dict[str, str]:
    read: Callable[[io.BytesIO], Iterator[str]] = {DOCX: _document, XLSX: _workbook, PPTX: _slides}[mime_type]
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(each.file_size for each in archive.infolist()) > MAX_UNPACKED_BYTES:
                return {"problem": "This file holds too much to be read."}
        return {"text": _joined(read(io.BytesIO(data)))}
    except MemoryError:
        return {"problem": "This file holds too much to be read."}
    except Exception:  # a damaged file may raise any error in the libraries; this process reads no other file
        return {"problem": "This file cannot be read; it is damaged, or protected by a password."}


def _joined(pieces: Iterator[str]) -> str:
    """Return the pieces as lines, until there are too many characters."""
    lines: list[str] = []
    chars = 0
    for piece in pieces:
        lines.append(piece)
        chars += len(piece) + 1
        if chars > MAX_CHARS:
            lines.append("[The rest is left out.]")
            break
    return "\n".join(lines)


def _document(file: io.BytesIO) -> Iterator[str]:
    for block in docx.Document(file).iter_inner_content():
        if isinstance(block, table.Table):
            yield from _rows(block)
        elif block.style is not None and (block.style.name or "").startswith("Heading "):
            yield f"\n## {block.text}"
        else:
            yield block.text


def _rows(table: Table) -> Iterator[str]:
    for row in table.rows:
        yield " | ".join(cell.text.replace("\n", " ") for cell in row.cells)


def _workbook(file: io.BytesIO) -> Iterator[str]:
    """Yield each sheet as CSV, with the results of formulas."""
    workbook = openpyxl.load_workbook(file, read_only=True, data_only=True)
    for sheet in workbook.worksheets:
        yield f"\n## {sheet.title}"
        # Where a program wrote a wrong one, the library would leave out all cells outside of it.
        sheet.reset_dimensions()
        for row in sheet.iter_rows(values_only=True, max_col=MAX_COLUMNS):
            if any(value is not None for value in row):
                yield _csv_line(row)


def _csv_line(row: tuple[Any, ...]) -> str:
    last = max(at for at, value in enumerate(row) if value is not None)
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(row[: last + 1])
    return line.getvalue()


def _slides(file: io.BytesIO) -> Iterator[str]:
    """Yield the texts of each slide, and its notes."""
    for number, slide in enumerate(pptx.Presentation(file).slides, 1):
        yield f"\n## Slide {number}"
        for shape in slide.shapes:
            if shape.has_text_frame:
                yield shape.text_frame.text
            elif shape.has_table:
                yield from (" | ".join(cell.text for cell in row.cells) for row in shape.table.rows)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame:
            yield f"Notes: {slide.notes_slide.notes_text_frame.text}"


if __name__ == "__main__":
    write_result(extract_text)
