"""Recognises uploaded texts, CSV files, PDFs and Office files by their content, and converts texts to UTF-8."""

from __future__ import annotations

import io
import re
import zipfile
from dataclasses import dataclass, field

from agents.tools.office_files import DOCX, PPTX, XLSX
from chatapp.files.text_encodings import decode_text
from chatapp.operations.errors import InvalidInput
from chatapp.operations.storage.zip_files import open_zip_file

# RIFF begins WebP, but also sound files, which the image reader refuses.
_IMAGE_STARTS = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF")
# This includes formats that cannot be read, so that they are refused with the message about images.
_IMAGE_NAMES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".svg", ".bmp", ".heic")
_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_NOT_ACCEPTED = (
    "This file is neither an image, nor a text, a CSV, a PDF or an Office file (docx, xlsx, pptx)."
)
_OFFICE = {"word/document.xml": DOCX, "xl/workbook.xml": XLSX, "ppt/presentation.xml": PPTX}
BEGINNING_BYTES = 1_024
MAX_LIST_BYTES = 2 * 2**20
"""Limit for the file list of a zip, which is about 20,000 files; a longer one is not an Office file."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document to store. A text's `content` is UTF-8, whatever its encoding was."""

    content: bytes = field(repr=False)
    mime_type: str


def read_document(content: bytes, name: str) -> Document | None:
    """Return the document, or None for an image, by content or name. Raise InvalidInput if it cannot be read."""
    # A text may begin with the same bytes, but the beginning of an image is not readable text.
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
    # The beginning may end within a character, after up to three of its bytes.
    return any(_decoded(content[: BEGINNING_BYTES - cut]) is not None for cut in range(4))


def _office_type(content: bytes) -> str | None:
    """Return the type indicated by the names in the zip, or None. Nothing is unpacked; reading limits the content."""
    try:
        with open_zip_file(io.BytesIO(content), MAX_LIST_BYTES) as archive:
            names = frozenset(archive.namelist())
    except (zipfile.BadZipFile, ValueError, OSError):
        return None
    return next((kind for part, kind in _OFFICE.items() if part in names), None)


def _decoded(content: bytes) -> str | None:
    """Return the text, or None if it has control characters or no known encoding."""
    text = decode_text(content)
    return None if text is None or _CONTROL.search(text) else text
