"""Recognises uploaded texts, CSV files, PDFs and Office files by their content, and converts texts to UTF-8."""

from __future__ import annotations

import codecs
import io
import re
import zipfile
from dataclasses import dataclass, field

from agents.tools.office_files import DOCX, PPTX, XLSX
from chatapp.operations.errors import InvalidInput
from chatapp.operations.zip_files import open_zip_file

_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# RIFF begins WebP, and sound, too: the reader of images refuses what is none.
_IMAGE_STARTS = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF")
# Also kinds that cannot be read: they are refused with the sentence about images.
_IMAGE_NAMES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".svg", ".bmp", ".heic")
_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_NOT_ACCEPTED = (
    "This file is neither an image, nor a text, a CSV, a PDF or an Office file (docx, xlsx, pptx)."
)
_OFFICE = {"word/document.xml": DOCX, "xl/workbook.xml": XLSX, "ppt/presentation.xml": PPTX}
_OF_GB2312 = re.compile(rb"[\xa1-\xf7][\xa1-\xfe]")
_LAST_COMMON = b"\xd7\xff"
"""Behind the signs and the common characters of GB 2312; the rare ones follow."""
SAMPLE_CHARS = 10_000
LEAST_CHARS = 4
LEAST_COMMON = 0.7
BEGINNING_BYTES = 1_024
MAX_LIST_BYTES = 2 * 2**20
"""Of the list of a zip that is taken for an Office file: about 20,000 files."""


@dataclass(frozen=True, slots=True)
class Document:
    """`content` of a text is UTF-8, whatever its encoding was."""

    content: bytes = field(repr=False)
    mime_type: str


def read_document(content: bytes, name: str) -> Document | None:
    """Return None for an image, by content or name. Raise InvalidInput for anything else that cannot be read."""
    # A text may begin so, too; an image has no readable beginning.
    is_image = content.startswith(_IMAGE_STARTS) and not _begins_as_text(content)
    if is_image or name.lower().endswith(_IMAGE_NAMES):
        return None
    if content[:1024].lstrip().startswith(b"%PDF-"):
        return Document(content, "application/pdf")
    if content.startswith(b"PK\x03\x04") and (office := _office_type(content)):
        return Document(content, office)
    text = _decoded(content)
    if text is None or not text.strip():
        raise InvalidInput(_NOT_ACCEPTED, code="not_accepted")
    kind = "text/csv" if name.lower().endswith((".csv", ".tsv")) else "text/plain"
    return Document(text.replace("\r\n", "\n").encode(), kind)


def _begins_as_text(content: bytes) -> bool:
    # The beginning may end within a character, of which three bytes may be there.
    return any(_decoded(content[: BEGINNING_BYTES - cut]) is not None for cut in range(4))


def _office_type(content: bytes) -> str | None:
    """Return the type that its parts say; None for another zip. Nothing is unpacked; what it holds is bounded when it
    is read."""
    try:
        with open_zip_file(io.BytesIO(content), MAX_LIST_BYTES) as archive:
            names = frozenset(archive.namelist())
    except (zipfile.BadZipFile, ValueError, OSError):
        return None
    return next((kind for part, kind in _OFFICE.items() if part in names), None)


def _decoded(content: bytes) -> str | None:
    """Return None for what is not text: control characters, or no known encoding."""
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS.items() if content.startswith(mark)), "utf-8")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        # Spreadsheets still write these encodings of Windows, in China and in the west.
        text = _chinese(content) or content.decode("cp1252", "replace")
        # Five bytes stand for nothing in it: what has them is something else.
        if "\ufffd" in text:
            return None
    return None if _CONTROL.search(text) else text


def _chinese(content: bytes) -> str | None:
    """Return the text where it is GB 18030, of which GBK and GB 2312 are parts; None where it is not."""
    try:
        text = content.decode("gb18030")
    except UnicodeDecodeError:
        return None
    beginning = "".join(re.findall(r"[^\x00-\x7f]", text[: 10 * SAMPLE_CHARS])[:SAMPLE_CHARS])
    known = _OF_GB2312.findall(beginning.encode("gb2312", "replace"))
    common = sum(pair < _LAST_COMMON for pair in known)
    # What is western and can be read so, too, gives rare characters.
    is_chinese = common >= max(LEAST_CHARS, LEAST_COMMON * len(beginning))
    return text if is_chinese else None
