"""Tools for the files that the user attached to this conversation: list them, and read their text page by page."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar, Protocol

from pydantic import Field

from agents.tools.arguments import Arguments, read_arguments, schema_of
from agents.tools.office_files import DOCX, PPTX, XLSX, read_office
from agents.tools.pdf_pages import read_pdf
from agents.tools.protocol import Right, ToolCaller, ToolFailure, ToolImage, ToolOutput, ToolTraits
from agents.types import ToolSpec

PAGE_CHARS = 20_000
CSV_ROWS = 200
DIALECT_CHARS = 10_000
DELIMITERS = ",;\t|"
QUOTES = "\"'"
# The default is 131,072 characters per cell; uploads already limit the size of a file.
csv.field_size_limit(2**31 - 1)

_RIGHTS: frozenset[Right] = frozenset({"files"})


@dataclass(frozen=True, slots=True)
class FileFacts:
    id: str
    name: str
    mime_type: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class FileContent:
    facts: FileFacts
    data: bytes = field(repr=False)


class FilesPort(Protocol):
    """Files that the caller attached to this conversation."""

    async def list_files(self, caller: ToolCaller) -> Sequence[FileFacts]: ...

    async def read_file(self, caller: ToolCaller, file_id: str) -> FileContent:
        """Return the file. Raise ToolFailure."""
        ...


class NoArguments(Arguments):
    pass


class ReadArguments(Arguments):
    file_id: str = Field(min_length=1, max_length=100, description="As files_list names it.")
    page: int = Field(
        1,
        ge=1,
        description="Of a PDF its page; of a CSV the next 200 rows; of all else the next 20,000 characters.",
    )


@dataclass(frozen=True, slots=True)
class FilesList:
    port: FilesPort

    spec: ClassVar = ToolSpec(
        "files_list", "Lists the files the user attached to this conversation.", schema_of(NoArguments)
    )
    traits: ClassVar = ToolTraits(rights=_RIGHTS)

    async def call(self, arguments: Mapping[str, Any], caller: ToolCaller) -> ToolOutput:
        read_arguments(NoArguments, arguments)
        files = await self.port.list_files(caller)
        lines = [f"{file.id}: {file.name} ({file.mime_type}, {file.size_bytes:,} bytes)" for file in files]
        return ToolOutput("\n".join(lines) or "No files are attached to this conversation.")


@dataclass(frozen=True, slots=True)
class FilesRead:
    port: FilesPort

    spec: ClassVar = ToolSpec(
        "files_read",
        "Reads a file the user attached: a page of a PDF, rows of a CSV, a part of a text or an Office file, or"
        " an image.",
        schema_of(ReadArguments),
    )
    traits: ClassVar = ToolTraits(timeout_s=60.0, rights=_RIGHTS)

    async def call(self, arguments: Mapping[str, Any], caller: ToolCaller) -> ToolOutput:
        wanted = read_arguments(ReadArguments, arguments)
        file = await self.port.read_file(caller, wanted.file_id)
        kind = file.facts.mime_type
        if kind.startswith("image/"):
            return ToolOutput(f"The image {file.facts.name}.", (ToolImage(file.data, kind),))
        if kind == "application/pdf":
            return ToolOutput(await read_pdf(file.data, wanted.page))
        if kind in (DOCX, XLSX, PPTX):
            return ToolOutput(text_page((await read_office(file.data, kind)).strip(), wanted.page))
        read = csv_page if kind == "text/csv" else text_page
        return ToolOutput(await asyncio.to_thread(read, file.data.decode("utf-8", "replace"), wanted.page))


def text_page(text: str, page: int) -> str:
    pages = max(1, -(-len(text) // PAGE_CHARS))
    _check_page(page, pages)
    return f"Part {page} of {pages}.\n\n{text[(page - 1) * PAGE_CHARS : page * PAGE_CHARS]}"


def csv_page(text: str, page: int) -> str:
    """Return a page of rows, numbered as in the file, below the header row."""
    first, count, shown = (page - 1) * CSV_ROWS, 0, list[list[str]]()
    try:
        rows = _read_rows(text, *_dialect_of(text[:DIALECT_CHARS]))
        header = next(rows, [])
        # Do not make a list of all rows: it takes many times the file's size, and creating it blocks all other threads.
        for count, row in enumerate(rows, 1):
            if first < count <= first + CSV_ROWS:
                shown.append(row)
    except csv.Error as error:
        raise ToolFailure(f"The file is not a readable CSV: {error}.") from None
    pages = max(1, -(-count // CSV_ROWS))
    _check_page(page, pages)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(
        [["row", *header], *([str(number), *row] for number, row in enumerate(shown, first + 1))]
    )
    place = f"Rows {first + 1} to {first + len(shown)} of {count:,}" if shown else "0 rows"
    return f"{place} (page {page} of {pages}).\n\n{out.getvalue()}"


def _read_rows(text: str, delimiter: str, quote: str) -> Iterator[list[str]]:
    # Accept the line ends of any system, which the reader would report as damage, and blanks before a quoted cell.
    file = io.StringIO(text, newline=None)
    return csv.reader(file, delimiter=delimiter, quotechar=quote, skipinitialspace=True)


def _dialect_of(beginning: str) -> tuple[str, str]:
    """Return the (delimiter, quote) that split most rows into as many cells as the first one. The time of csv.Sniffer
    grows with the fourth power of the number of quotes, and it holds the GIL."""

    def count_alike(dialect: tuple[str, str]) -> int:
        widths = [len(row) for row in _read_rows(beginning, *dialect) if row]
        return widths.count(widths[0]) if widths and widths[0] > 1 else 0

    # The first wins a tie, because an apostrophe is seldom a quote.
    return max(product(DELIMITERS, QUOTES), key=count_alike)


def _check_page(page: int, pages: int) -> None:
    if page > pages:
        raise ToolFailure(f"There are only {pages} pages.")
