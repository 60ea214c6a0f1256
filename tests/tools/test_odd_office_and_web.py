"""Edge cases of Office files and of compressed web pages."""

import gzip
import io
import re
import zipfile
from collections.abc import Mapping
from types import MappingProxyType

import docx
import openpyxl
import pptx
import pytest
from docx.opc.constants import CONTENT_TYPE, RELATIONSHIP_TYPE
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from agents.tools.http_fetch import _unpacker
from agents.tools.office_files import DOCX, PPTX, XLSX, extract_text


def workbook_of(*rows: tuple[object, ...], change: tuple[bytes, bytes] = (b"$^", b"")) -> bytes:
    """Return a workbook of these rows, after replacing a pattern in the XML of its sheet."""
    workbook, made = openpyxl.Workbook(), io.BytesIO()
    for row in rows:
        workbook.active.append(row)
    workbook.save(made)
    changed = io.BytesIO()
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(changed, "w") as new:
        for item in old.infolist():
            content = old.read(item)
            if item.filename.endswith("sheet1.xml"):
                content = re.sub(*change, content)
            new.writestr(item, content)
    return changed.getvalue()


def test_formulas_are_shown_if_the_workbook_stores_no_results():
    """Excel stores results beside formulas, but openpyxl, pandas and others store none."""
    rows = (2, 3, "=A1*B1"), ("=SUM(A1:B1)",)
    assert extract_text(workbook_of(*rows), XLSX)["text"] == "\n## Sheet\n2,3,=A1*B1\n=SUM(A1:B1)"
    calculated = workbook_of(*rows, change=(rb"(A1\*B1</f>)<v ?/>|(A1\*B1</f>)<v></v>", rb"\1\2<v>6</v>"))
    # The other result stays empty, as for a formula that yields no text.
    assert extract_text(calculated, XLSX)["text"] == "\n## Sheet\n2,3,6"


def run(text: str) -> str:
    return f"<w:r><w:t>{text}</w:t></w:r>"


def document_with(body: str, notes: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the text of a document with this XML between two paragraphs and with these notes, by kind."""
    document, made = docx.Document(), io.BytesIO()
    document.add_paragraph("First.")
    document.add_paragraph("Last.")
    wrapped = parse_xml(f"<w:body {nsdecls('w')}>{body}</w:body>")
    for element in reversed(wrapped):
        document.element.body.insert(1, element)
    for kind, xml in notes.items():
        root = f"<w:{kind}s {nsdecls('w')}>{xml}</w:{kind}s>".encode()
        name, of_notes = PackURI(f"/word/{kind}s.xml"), CONTENT_TYPE.WML_FOOTNOTES.replace("footnote", kind)
        part = Part(name, of_notes, root, document.part.package)
        document.part.relate_to(part, RELATIONSHIP_TYPE.FOOTNOTES.replace("footnote", kind))
    document.save(made)
    return extract_text(made.getvalue(), DOCX)["text"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            f"<w:p>{run('It costs ')}<w:del w:id='1'><w:r><w:delText>400</w:delText></w:r></w:del>"
            f"<w:ins w:id='2'>{run('500')}</w:ins><w:moveFrom w:id='3'>{run(' pounds')}</w:moveFrom>"
            f"<w:moveTo w:id='4'>{run(' euros')}</w:moveTo></w:p>",
            "It costs 500 euros",
        ),
        (f"<w:sdt><w:sdtContent><w:p>{run('A field')}</w:p></w:sdtContent></w:sdt>", "A field"),
        (
            f"<w:p>{run('Name: ')}<w:sdt><w:sdtContent>{run('Ann')}</w:sdtContent></w:sdt></w:p>",
            "Name: Ann",
        ),
        (
            f"<w:p><w:r><w:pict><w:txbxContent><w:p>{run('In a box')}</w:p></w:txbxContent></w:pict></w:r>"
            f"{run('Beside it')}</w:p>",
            "Beside it\nIn a box",
        ),
        (
            "<w:tbl><w:tblGrid><w:gridCol/><w:gridCol/></w:tblGrid>"
            f"<w:tr><w:tc><w:tcPr><w:vMerge w:val='restart'/></w:tcPr><w:p>{run('North')}</w:p></w:tc>"
            f"<w:sdt><w:sdtContent><w:tc><w:p>{run('Oslo')}</w:p></w:tc></w:sdtContent></w:sdt></w:tr>"
            "<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr><w:p/></w:tc><w:tc><w:tbl><w:tblGrid><w:gridCol/></w:tblGrid>"
            f"<w:tr><w:tc><w:p>{run('Bergen')}</w:p></w:tc></w:tr></w:tbl><w:p/></w:tc></w:tr>"
            f"<w:tr><w:tc><w:tcPr><w:gridSpan w:val='2'/></w:tcPr><w:p>{run('All')}</w:p></w:tc></w:tr></w:tbl>",
            "North | Oslo\nNorth | Bergen\nAll | All",
        ),
    ],
    ids=["tracked changes", "content control", "content control in a line", "text box", "table"],
)
def test_the_text_of_a_document_contains_all_that_word_shows(body: str, text: str):
    """python-docx skips the text in content controls (ECMA-376 part 1, 17.5.2) and revisions (17.13.5)."""
    assert document_with(body) == f"First.\n{text}\nLast."


def note(kind: str, number: int, *texts: str) -> str:
    return f"<w:{kind} w:id='{number}'>{''.join(f'<w:p>{run(text)}</w:p>' for text in texts)}</w:{kind}>"


def reference(kind: str, number: int) -> str:
    return f"<w:r><w:{kind}Reference w:id='{number}'/></w:r>"


def test_footnotes_and_endnotes_follow_the_paragraph_that_refers_to_them():
    """Separators are notes, too, but no text refers to them (ECMA-376 part 1, 17.11)."""
    body = (
        f"<w:p>{run('Costs')}{reference('footnote', 3)}{run(' rose')}{reference('endnote', 3)}{run('.')}"
        f"<w:del w:id='1'>{reference('footnote', 4)}</w:del></w:p>"
        "<w:tbl><w:tblGrid><w:gridCol/></w:tblGrid>"
        f"<w:tr><w:tc><w:p>{run('500')}{reference('footnote', 9)}{reference('footnote', 2)}</w:p></w:tc></w:tr></w:tbl>"
    )
    parts = {
        "footnote": note("footnote", 0, "-----")
        + note("footnote", 2, "In euros.")
        + note("footnote", 3, "Without tax.", "See below.")
        + note("footnote", 4, "Deleted."),
        "endnote": note("endnote", 3, "Smith 2019."),
    }
    expected = (
        "Costs[^1] rose[^2].\n[^1]: Without tax. See below.\n[^2]: Smith 2019.\n500[^3]\n[^3]: In euros."
    )
    assert document_with(body, parts) == f"First.\n{expected}\nLast."


def test_comments_in_a_document_are_shown_with_their_authors():
    document, made = docx.Document(), io.BytesIO()
    costs = document.add_paragraph("It costs ").add_run("500")
    document.add_paragraph("Last.")
    document.add_comment(costs, "Yes.")
    # python-docx places a later comment before an earlier one.
    document.add_comment(costs, "Without tax?", author="Ada")
    document.save(made)
    text = extract_text(made.getvalue(), DOCX)["text"]
    assert (
        text
        == "It costs 500[^1][^2]\n[^1]: Comment by Ada: Without tax?\n[^2]: Comment by somebody: Yes.\nLast."
    )


def test_headers_and_footers_are_shown_if_they_are_in_use():
    """Word keeps the headers and footers of first and even pages, hidden, after they are switched off."""
    document, made = docx.Document(), io.BytesIO()
    document.add_paragraph("Page one.")
    last = document.add_section()
    document.add_paragraph("Page two.")
    first = document.sections[0]
    first.header.paragraphs[0].text = "Acme\tConfidential"
    first.first_page_header.paragraphs[0].text = "The first page"
    first.even_page_footer.paragraphs[0].text = "An even page"
    first.footer.paragraphs[0].text = "Draft of May 3"
    last.footer.is_linked_to_previous = False
    last.footer.paragraphs[0].text = "Appendix"
    document.save(made)
    text = extract_text(made.getvalue(), DOCX)["text"]
    assert (
        text == "Header: Acme\tConfidential\nPage one.\n\nPage two.\nFooter: Draft of May 3\nFooter: Appendix"
    )
    first.different_first_page_header_footer = True
    document.settings.odd_and_even_pages_header_footer = True
    document.save(made)
    text = extract_text(made.getvalue(), DOCX)["text"]
    assert "\nHeader: The first page\n" in text
    assert "\nFooter: An even page\n" in text


def test_all_cells_of_a_sheet_are_read_whatever_its_dimension_says():
    """Some exporters always write the dimension A1, which Excel ignores. openpyxl trusts it in read-only mode (its
    manual: "Worksheet dimensions", `reset_dimensions`)."""
    change = rb'<dimension ref="[^"]*" */>', b'<dimension ref="A1"/>'
    rows = ("name", "sum"), ("Ann", 1), ("Bob", 2)
    text = extract_text(workbook_of(*rows, change=change), XLSX)["text"]
    assert "Ann,1" in text
    assert "Bob,2" in text


def test_text_in_groups_of_shapes_on_a_slide_is_shown():
    presentation, made = pptx.Presentation(), io.BytesIO()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    inner = slide.shapes.add_group_shape().shapes.add_group_shape()
    inner.shapes.add_textbox(0, 0, 9, 9).text_frame.text = "In a group"
    slide.shapes.add_textbox(0, 0, 9, 9).text_frame.text = "Beside it"
    presentation.save(made)
    assert extract_text(made.getvalue(), PPTX)["text"] == "\n## Slide 1\nIn a group\nBeside it"


def test_a_gzip_page_with_several_members_is_unpacked_whole():
    """A gzip file is a series of members (RFC 1952). Reading only the first would silently truncate the page."""
    unpack = _unpacker("gzip")
    packed = gzip.compress(b"first half, ") + gzip.compress(b"second half")
    assert unpack(packed, 1_000) == b"first half, second half"
