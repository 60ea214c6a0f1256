"""agents/tools/office_files.py, agents/tools/http_fetch.py, agents/yaml_text.py."""

import gzip
import io
import re
import zipfile

import openpyxl

from agents.tools.http_fetch import _unpacker
from agents.tools.office_files import XLSX, extract_text


def sheet_with_dimension(said: str) -> bytes:
    """Return a workbook of three rows whose sheet says that its cells are `said`."""
    workbook, made = openpyxl.Workbook(), io.BytesIO()
    for row in (("name", "sum"), ("Ann", 1), ("Bob", 2)):
        workbook.active.append(row)
    workbook.save(made)
    changed = io.BytesIO()
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(changed, "w") as new:
        for item in old.infolist():
            content = old.read(item)
            if item.filename.endswith("sheet1.xml"):
                content = re.sub(
                    rb'<dimension ref="[^"]*" */>', f'<dimension ref="{said}"/>'.encode(), content
                )
            new.writestr(item, content)
    return changed.getvalue()


def test_all_cells_of_a_sheet_are_read_whatever_its_dimension_says():
    """Some exporters write A1 always; Excel does not read it. openpyxl believes it where it reads only
    (its manual: "Worksheet dimensions", `reset_dimensions`)."""
    text = extract_text(sheet_with_dimension("A1"), XLSX)["text"]
    assert "Ann,1" in text
    assert "Bob,2" in text


def test_a_page_packed_in_several_members_is_unpacked_whole():
    """RFC 1952: a gzip file is a series of members. "What is longer is cut, and that is told": this is not told."""
    unpack = _unpacker("gzip")
    packed = gzip.compress(b"first half, ") + gzip.compress(b"second half")
    assert unpack(packed, 1_000) == b"first half, second half"
