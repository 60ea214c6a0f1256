"""Attached files: typed by their content, and listed and read only in their own conversation."""

from __future__ import annotations

import io
import random
import zipfile

import docx
import openpyxl
import pptx
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from agents.tools import office_files, pdf_pages
from agents.tools.protocol import ToolCaller, ToolFailure
from chatapp.context.tools.registry import BUILT_IN
from chatapp.conversations import message_values
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.models import Message
from chatapp.files.attachments import store_upload
from chatapp.operations import clock
from chatapp.operations.database.threads import in_database
from chatapp.runs.actions.sending import NewMessage, send_message
from tests.tools.test_offloads import picture

pytestmark = pytest.mark.django_db(transaction=True)
CSV = "name;amount\n" + "".join(f"item {n};{n * 3}\n" for n in range(500))


def pdf(*pages: str) -> bytes:
    writer = PdfWriter()
    for text in pages:
        page = writer.add_blank_page(300, 300)
        font = DictionaryObject(
            {
                NameObject("/Type"): NameObject("/Font"),
                NameObject("/Subtype"): NameObject("/Type1"),
                NameObject("/BaseFont"): NameObject("/Helvetica"),
            }
        )
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
        )
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 20 200 Td ({text}) Tj ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


@pytest.fixture
def attach(alice, settings, tmp_path):
    """Return a function that uploads and sends a file, and returns (its id, a caller in its conversation)."""
    settings.DATA_DIR = tmp_path
    conversation = create_conversation(user=alice, now=clock.now())

    def send(content, name):
        row = store_upload(user=alice, name=name, content=content)
        new = NewMessage(text="Look at this.", attachment_ids=[str(row.pk)])
        send_message(user=alice, conversation_id=str(conversation.pk), new=new, model=None, now=clock.now())
        return str(row.pk), ToolCaller(str(alice.pk), str(conversation.pk), "")

    return in_database(send)


async def read(file_id, caller, page=1):
    return await BUILT_IN["files_read"].call({"file_id": file_id, "page": page}, caller)


async def test_attached_files_are_listed(attach):
    file_id, caller = await attach(pdf("Hello"), "offer.pdf")
    listed = (await BUILT_IN["files_list"].call({}, caller)).text
    assert listed.startswith(f"{file_id}: offer.pdf (application/pdf, ")


async def test_a_pdf_is_read_page_by_page(attach):
    file_id, caller = await attach(pdf("First page", "The total is 4711"), "offer.pdf")
    assert (await read(file_id, caller, 2)).text == "Page 2 of 2.\n\nThe total is 4711"
    with pytest.raises(ToolFailure, match="only 2 pages"):
        await read(file_id, caller, 3)


async def test_a_pdf_with_a_wrong_offset_of_its_table_is_read(attach):
    file_id, caller = await attach(pdf("Hello").replace(b"startxref\n", b"startxref\n9"), "broken.pdf")
    assert (await read(file_id, caller)).text == "Page 1 of 1.\n\nHello"


@pytest.mark.parametrize("seed", range(3))
async def test_a_pdf_with_damage_everywhere_is_reported_as_unreadable(attach, seed):
    damaged = bytearray(pdf("Hello", "World"))
    chance = random.Random(seed)
    for _ in range(200):
        damaged[chance.randrange(9, len(damaged))] = chance.randrange(256)
    file_id, caller = await attach(bytes(damaged), "broken.pdf")
    with pytest.raises(ToolFailure, match=r"This PDF cannot be read; it is damaged\."):
        await read(file_id, caller)


async def test_a_pdf_that_needs_too_much_memory_ends_only_its_own_process():
    with pytest.raises(ToolFailure, match="cannot be read"):
        await pdf_pages.read_pdf(pdf("a" * 5_000_000), 1, memory_bytes=1 << 20)


def word() -> bytes:
    document, out = docx.Document(), io.BytesIO()
    document.add_heading("Offer", 1)
    document.add_paragraph("The total is 4711.")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "Oslo", "Rome"
    document.save(out)
    return out.getvalue()


def excel() -> bytes:
    workbook, out = openpyxl.Workbook(), io.BytesIO()
    workbook.active.title = "Prices"
    workbook.active.append(["item", None, 3.5])
    workbook.create_sheet("More").append(["a, b"])
    workbook.save(out)
    return out.getvalue()


def powerpoint() -> bytes:
    presentation, out = pptx.Presentation(), io.BytesIO()
    slide = presentation.slides.add_slide(presentation.slide_layouts[5])
    slide.shapes.title.text = "Harbours"
    slide.notes_slide.notes_text_frame.text = "Speak slowly."
    presentation.save(out)
    return out.getvalue()


OFFICE = [
    (word(), "offer.docx", "## Offer\nThe total is 4711.\nOslo | Rome"),
    (excel(), "prices.xlsx", '## Prices\nitem,,3.5\n\n## More\n"a, b"'),
    (powerpoint(), "talk.pptx", "## Slide 1\nHarbours\nNotes: Speak slowly."),
]


@pytest.mark.parametrize(("content", "name", "text"), OFFICE)
async def test_an_office_file_is_read_as_text(attach, content, name, text):
    file_id, caller = await attach(content, name)
    assert (await read(file_id, caller)).text == f"Part 1 of 1.\n\n{text}"
    with pytest.raises(ToolFailure, match="only 1 page"):
        await read(file_id, caller, 2)


@pytest.mark.parametrize(("content", "name", "text"), OFFICE)
async def test_a_damaged_office_file_is_reported(attach, content, name, text):
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as whole, zipfile.ZipFile(out, "w") as damaged:
        for part in whole.namelist():
            damaged.writestr(part, whole.read(part)[: -40 if part.endswith(".xml") else None])
    file_id, caller = await attach(out.getvalue(), name)
    with pytest.raises(ToolFailure, match="cannot be read"):
        await read(file_id, caller)


async def test_a_file_that_unpacks_to_too_much_is_refused():
    out = io.BytesIO(word())
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("word/media/zeros", bytes(office_files.MAX_UNPACKED_BYTES))
    assert len(out.getvalue()) < 1_000_000
    with pytest.raises(ToolFailure, match="contains too much"):
        await office_files.read_office(out.getvalue(), office_files.DOCX)
    with pytest.raises(ToolFailure, match=r"cannot be read|contains too much"):
        await office_files.read_office(word(), office_files.DOCX, memory_bytes=1 << 20)


async def test_csv_rows_are_shown_with_the_header_and_row_numbers(attach):
    file_id, caller = await attach(CSV.encode("cp1252"), "table.csv")
    text = (await read(file_id, caller, 2)).text
    assert text.startswith("Rows 201 to 400 of 500 (page 2 of 3).")
    assert "row,name,amount\n201,item 200,600\n" in text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("姓名,城市\n张三,北京\n", "gbk"),
        ("产品名称;价格\n镕基牌电脑;五千元€\n", "gb18030"),
        ("Name;Größe\nMüller;Köln\nSüß & Söhne;Ääkkönen\n", "cp1252"),
        ("Ça va ? «Été» – l’âge d’or, CRÉÉ À PARÍS", "cp1252"),
        ("Größe", "cp1252"),
    ],
)
async def test_a_text_in_a_windows_or_chinese_encoding_is_read(attach, text, encoding):
    file_id, caller = await attach(text.encode(encoding), "notes.txt")
    assert (await read(file_id, caller)).text == f"Part 1 of 1.\n\n{text}"


async def test_a_text_in_utf_16_is_read(attach):
    file_id, caller = await attach("Grüße aus Zürich".encode("utf-16"), "notes.txt")
    assert "Grüße aus Zürich" in (await read(file_id, caller)).text


async def test_an_image_is_returned_as_an_image(attach):
    file_id, caller = await attach(picture(), "red.png")
    assert (await read(file_id, caller)).images[0].mime_type == "image/png"


async def test_files_of_other_conversations_and_users_cannot_be_listed_or_read(attach, alice, bob):
    file_id, caller = await attach(b"secret plan", "plan.txt")
    elsewhere = await in_database(create_conversation)(user=alice, now=clock.now())
    for asking in (
        ToolCaller(str(bob.pk), caller.conversation_id, ""),
        ToolCaller(str(alice.pk), str(elsewhere.pk), ""),
    ):
        assert (await BUILT_IN["files_list"].call({}, asking)).text.startswith("No files")
        with pytest.raises(ToolFailure, match="No such file"):
            await read(file_id, asking)


async def test_a_file_is_a_line_for_the_model_and_a_part_for_the_page(attach):
    file_id, _ = await attach(b"secret plan", "plan.txt")
    question = await Message.objects.filter(role="user").aget()
    file, text = question.parts
    assert (file["type"], file["name"], file["size_bytes"]) == ("file", "plan.txt", 11)
    assert text["text"] == "Look at this."
    seen = message_values.message_value(question).text
    assert seen == f"[Attached file {file_id}: plan.txt (text/plain, 11 bytes)]\nLook at this."


# --- the upload --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "name", "mime_type"),
    [
        (pdf("x"), "anything.bin", "application/pdf"),
        (b"a,b\n1,2\n", "t.csv", "text/csv"),
        (word(), "anything.zip", office_files.DOCX),
        (b"<html><script>alert(1)</script>", "page.html", "text/plain"),
        (picture(), "really.txt", "image/png"),
    ],
)
def test_the_type_of_an_upload_is_detected_from_its_content(alice, api_client, content, name, mime_type):
    answer = api_client(alice).post("/api/v1/files", {"file": SimpleUploadedFile(name, content)})
    assert answer.status_code == 201
    assert answer.json()["mime_type"] == mime_type
    shown = api_client(alice).get(answer.json()["url"])
    kind = "inline" if mime_type.startswith("image/") else "attachment"
    assert shown["Content-Disposition"].startswith(kind)
    assert shown["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "content", [b"\x7fELF\x02\x01\x01\x00" + bytes(50), b"PK\x03\x04\x14\x00", b"   \n", b"\x00\x01\x02"]
)
def test_a_file_that_no_tool_can_read_is_refused(alice, api_client, content):
    answer = api_client(alice).post("/api/v1/files", {"file": SimpleUploadedFile("x.txt", content)})
    assert answer.status_code == 422
