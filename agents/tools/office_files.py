"""Extract the text of Word, Excel and PowerPoint files, in a subprocess."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from agents.libraries import Library
from agents.tools.in_subprocess import MEMORY_BYTES, read_in_subprocess, write_result

if TYPE_CHECKING:
    import docx
    import openpyxl
    import pptx
    from docx import oxml
    from docx.text import paragraph as paragraphs
else:
    docx, openpyxl, pptx = Library("docx"), Library("openpyxl"), Library("pptx")
    oxml, paragraphs = Library("docx.oxml"), Library("docx.text.paragraph")

_OPEN_XML = "application/vnd.openxmlformats-officedocument"
DOCX = f"{_OPEN_XML}.wordprocessingml.document"
XLSX = f"{_OPEN_XML}.spreadsheetml.sheet"
PPTX = f"{_OPEN_XML}.presentationml.presentation"
MAX_CHARS = 2_000_000
MAX_UNPACKED_BYTES = 200_000_000
MAX_COLUMNS = 500
# The result of a formula, in the XML of a sheet. A library that only writes files leaves it empty.
_RESULT = re.compile(rb"</(?:\w+:)?f>\s*<(?:\w+:)?v>[^<]")
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_RELATIONSHIPS = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_NOTES = ("footnote", "endnote", "comment")
# Deleted or moved content, and the second form of a drawing, for programs that do not support the first.
_NOT_SHOWN = frozenset({f"{_WORD}del", f"{_WORD}moveFrom", f"{_COMPATIBILITY}Fallback"})


async def read_office(data: bytes, mime_type: str, *, memory_bytes: int = MEMORY_BYTES) -> str:
    """Return the text of the file, truncated if it is too long. Raise ToolFailure."""
    result = await read_in_subprocess(__name__, mime_type, data, what="file", memory_bytes=memory_bytes)
    return str(result["text"])


def extract_text(data: bytes, mime_type: str) -> dict[str, str]:
    read: Callable[[io.BytesIO], Iterator[str]] = {DOCX: _document, XLSX: _workbook, PPTX: _slides}[mime_type]
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(each.file_size for each in archive.infolist()) > MAX_UNPACKED_BYTES:
                return {"problem": "This file contains too much to be read."}
        return {"text": _joined(read(io.BytesIO(data)))}
    except MemoryError:
        return {"problem": "This file contains too much to be read."}
    except Exception:  # a damaged file may raise any error in the libraries; this process reads no other file
        return {"problem": "This file cannot be read; it is damaged, or protected by a password."}


def _joined(pieces: Iterator[str]) -> str:
    """Return the pieces as lines, truncated after MAX_CHARS."""
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
    document = docx.Document(file)
    _place_notes(document)
    yield from _page_edges(document, "header")
    for block in _blocks(document.element.body):
        if isinstance(block, str):
            yield block
            continue
        style = paragraphs.Paragraph(block, document).style
        is_heading = style is not None and (style.name or "").startswith("Heading ")
        yield f"\n## {_text(block)}" if is_heading else _text(block)
    yield from _page_edges(document, "footer")


def _place_notes(document: Any) -> None:
    """Move footnotes, endnotes and comments after the paragraph or table that refers to them, marked as in Markdown."""
    notes: dict[tuple[str, str], Any] = {}
    for part in document.part.related_parts.values():
        kind = part.content_type.rpartition(".")[2].removesuffix("s+xml")
        if kind in _NOTES:
            for note in oxml.parse_xml(part.blob):
                notes[kind, note.get(f"{_WORD}id")] = note
    number = 0
    for block in list(document.element.body):
        end = block
        for reference in list(_inside(block, *(f"{kind}Reference" for kind in _NOTES))):
            kind = reference.tag.removeprefix(_WORD).removesuffix("Reference")
            note = notes.get((kind, reference.get(f"{_WORD}id")))
            if note is None:
                continue
            number += 1
            reference.addnext(_words(f"[^{number}]"))
            said = oxml.OxmlElement("w:p")
            said.append(oxml.OxmlElement("w:r"))
            author = f"Comment by {note.get(f'{_WORD}author') or 'somebody'}: " if kind == "comment" else ""
            said[0].append(_words(f"[^{number}]: {author}{_line(note).strip()}"))
            end.addnext(said)
            end = said


def _words(text: str) -> Any:
    element = oxml.OxmlElement("w:t")
    element.text = text
    return element


def _page_edges(document: Any, name: str) -> Iterator[str]:
    """Yield the headers or footers of the pages, each text once."""
    body = document.element.body
    shown = {"default"}
    if any(section.titlePg_val for section in body.iter(f"{_WORD}sectPr")):
        shown.add("first")
    if document.settings.odd_and_even_pages_header_footer:
        shown.add("even")
    lines: dict[str, None] = {}
    for reference in body.iter(f"{_WORD}{name}Reference"):
        part = document.part.related_parts.get(reference.get(f"{_RELATIONSHIPS}id"))
        if part is not None and reference.get(f"{_WORD}type", "default") in shown:
            lines[_line(part.element).strip()] = None
    yield from (f"{name.title()}: {line}" for line in lines if line)


def _blocks(element: Any) -> Iterator[Any]:
    """Yield paragraphs, and rows of tables as text. Includes content controls, tracked changes and text boxes, which
    Word shows but the library skips."""
    for block in _inside(element, "p", "tbl"):
        if block.tag == f"{_WORD}tbl":
            yield from _rows(block)
            continue
        yield block
        for box in _inside(block, "txbxContent"):
            yield from _blocks(box)


def _inside(element: Any, *names: str) -> Iterator[Any]:
    """Yield the nearest descendants with these names, without deleted ones."""
    wanted = {_WORD + name for name in names}
    for child in element:
        if child.tag in wanted:
            yield child
        elif child.tag not in _NOT_SHOWN:
            yield from _inside(child, *names)


def _text(paragraph: Any) -> str:
    return "".join(run.text for run in _inside(paragraph, "r"))


def _line(element: Any) -> str:
    """Return all text below this element, in one line."""
    said = (each if isinstance(each, str) else _text(each) for each in _blocks(element))
    return " ".join(filter(None, said)).replace("\n", " ")


def _rows(table: Any) -> Iterator[str]:
    """Yield rows as text. A merged cell repeats its text in each place that it covers."""
    above: dict[int, str] = {}
    for row in _inside(table, "tr"):
        cells: list[str] = []
        for cell in _inside(row, "tc"):
            text = above.get(len(cells), "") if cell.vMerge == "continue" else _line(cell)
            cells += [text] * min(cell.grid_span, MAX_COLUMNS)
        above = dict(enumerate(cells))
        yield " | ".join(cells)


def _workbook(file: io.BytesIO) -> Iterator[str]:
    """Yield each sheet as CSV, with the results of formulas, or the formulas if no program has calculated any."""
    with zipfile.ZipFile(file) as archive:
        parts = (archive.read(name) for name in archive.namelist() if name.endswith(".xml"))
        has_results = any(map(_RESULT.search, parts))
    workbook = openpyxl.load_workbook(file, read_only=True, data_only=has_results)
    for sheet in workbook.worksheets:
        yield f"\n## {sheet.title}"
        # If a program wrote wrong dimensions, the library would leave out all cells outside of them.
        sheet.reset_dimensions()
        for row in sheet.iter_rows(values_only=True, max_col=MAX_COLUMNS):
            if any(value is not None for value in row):
                yield _csv_line(row)


def _csv_line(row: tuple[Any, ...]) -> str:
    last = max(at for at, value in enumerate(row) if value is not None)
    line = io.StringIO()
    # An array formula is an object.
    cells = [getattr(value, "text", value) for value in row[: last + 1]]
    csv.writer(line, lineterminator="").writerow(cells)
    return line.getvalue()


def _slides(file: io.BytesIO) -> Iterator[str]:
    """Yield the texts of each slide, and its notes."""
    for number, slide in enumerate(pptx.Presentation(file).slides, 1):
        yield f"\n## Slide {number}"
        yield from _shapes(slide.shapes)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame:
            yield f"Notes: {slide.notes_slide.notes_text_frame.text}"


def _shapes(shapes: Any) -> Iterator[str]:
    for shape in shapes:
        if shape.has_text_frame:
            yield shape.text_frame.text
        elif shape.has_table:
            yield from (" | ".join(cell.text for cell in row.cells) for row in shape.table.rows)
        # A group is a shape that contains shapes.
        yield from _shapes(getattr(shape, "shapes", ()))


if __name__ == "__main__":
    write_result(extract_text)
