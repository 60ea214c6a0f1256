import io
import os
import struct
import zlib
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone
from PIL import Image
from pytest_django import Settings

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation
from chatapp.files import attachments
from chatapp.files.models import Attachment
from chatapp.forgetting.services import delete_file
from chatapp.operations.database.schema_version import database_made_at
from chatapp.operations.errors import InvalidInput, TooLarge
from tests.memory_store.rows import new_conversation, say

pytestmark = pytest.mark.django_db


def picture(kind: str = "PNG", size: tuple[int, int] = (8, 6), mode: str = "RGB", **options: object) -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, size, 128 if mode in ("L", "P") else None).save(buffer, kind, **options)
    return buffer.getvalue()


def png_chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png_header(width: int, height: int) -> bytes:
    """Return a small PNG file with this size in its header."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + png_chunk(b"IDAT", zlib.compress(b"\0" * 9))


def store(user: User, content: bytes) -> Attachment:
    return attachments.store_image(user=user, name="a.png", content=content)


@pytest.mark.parametrize(
    ("kind", "mime"),
    [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("WEBP", "image/webp"), ("GIF", "image/png")],
)
def test_the_type_is_read_from_the_content(alice: User, kind: str, mime: str):
    row = store(alice, picture(kind))
    assert (row.mime_type, row.width, row.height) == (mime, 8, 6)
    assert Image.open(attachments.content_path(row.sha256)).size == (8, 6)


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "LA", "I;16"])
def test_every_colour_mode_is_stored(alice: User, mode: str):
    assert store(alice, picture("PNG", mode=mode)).width == 8


@pytest.mark.mechanism("agentscope.offload-images")
def test_the_same_picture_twice_is_stored_once(alice: User, bob: User):
    first, second = store(alice, picture()), store(bob, picture())
    assert first.pk != second.pk
    assert first.sha256 == second.sha256


def test_an_image_that_is_sent_again_takes_no_more_room(alice: User, bob: User, settings: Settings):
    first = store(alice, picture())
    settings.MAX_STORED_BYTES = first.size_bytes
    assert store(alice, picture()) == first
    with pytest.raises(TooLarge, match="Delete some first"):
        store(alice, picture(size=(9, 9)))
    assert store(bob, picture()) != first
    attachments.content_path(first.sha256).unlink()
    assert attachments.read_content(store(alice, picture())), "its bytes were lost, and are stored again"


def test_each_upload_has_its_own_row(alice: User):
    first = store(alice, picture())
    assert attachments.store_upload(user=alice, name="a.png", content=picture()) != first


def test_a_file_of_a_conversation_that_is_being_deleted_is_not_reused(alice: User):
    conversation = new_conversation(alice)
    [message] = say(conversation, "Look.")
    first = store(alice, picture())
    first.messages.add(message)
    Conversation.objects.filter(pk=conversation.pk).update(user=None)
    assert store(alice, picture()) != first


def test_a_photo_is_turned_upright_and_loses_its_metadata(alice: User):
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = "taken at home"
    row = store(alice, picture("JPEG", exif=exif.tobytes(), comment=b"secret place"))
    assert (row.width, row.height) == (6, 8)
    content = attachments.read_content(row)
    assert b"taken at home" not in content
    assert b"secret place" not in content


def test_too_many_pixels_are_refused_by_the_header_alone(alice: User):
    with pytest.raises(TooLarge, match="too many pixels"):
        store(alice, png_header(60_000, 60_000))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
        b"<html><script>alert(1)</script>",
        b"%PDF-1.7",
        png_header(4, 4),
        picture("JPEG", (64, 64))[:200],
        picture("BMP"),
        b"GIF89a" + b"\xff" * 40,
    ],
    ids=["empty", "svg", "html", "pdf", "header-only", "cut", "bmp", "broken-gif"],
)
def test_content_that_is_no_image_is_rejected(alice: User, content: bytes):
    with pytest.raises(InvalidInput, match="not an image"):
        store(alice, content)
    assert not Attachment.objects.exists()


def test_a_script_after_the_image_data_is_removed(alice: User):
    row = store(alice, picture() + b"<script>alert(1)</script>")
    assert b"<script>" not in attachments.read_content(row)


def test_a_file_over_the_limit_is_refused(alice: User, settings: Settings):
    settings.MAX_UPLOAD_BYTES = 10
    with pytest.raises(TooLarge, match="too large"):
        store(alice, picture())


def test_a_data_url_carries_the_stored_bytes(alice: User):
    assert attachments.data_url(store(alice, picture())).startswith("data:image/png;base64,iVBOR")


@pytest.mark.django_db(transaction=True)
async def test_data_urls_exclude_files_of_other_users_and_unknown_ids(alice: User, bob: User):
    hers = await sync_to_async(store)(alice, picture())
    his = await sync_to_async(store)(bob, picture())
    found = await attachments.load_data_urls(alice.pk, [str(hers.pk), str(his.pk), "no-id"])
    assert list(found) == [str(hers.pk)]


def test_bytes_that_two_rows_share_stay_until_the_last_row_is_deleted(alice: User, bob: User):
    first, second = store(alice, picture()), store(bob, picture())
    path = attachments.content_path(first.sha256)
    delete_file(alice, str(first.pk), now=timezone.now())
    assert path.exists()
    delete_file(bob, str(second.pk), now=timezone.now())
    assert not path.exists()


@pytest.mark.mechanism("contract.files")
def test_the_sweep_removes_unused_uploads_after_a_day_and_files_without_a_row(alice: User):
    conversation = new_conversation(alice)
    used, unused = store(alice, picture(size=(3, 3))), store(alice, picture(size=(4, 4)))
    [message] = say(conversation, "Look.")
    used.messages.add(message)
    stray = attachments.content_path("ab" + "0" * 62)
    stray.parent.mkdir(parents=True, exist_ok=True)
    stray.write_bytes(b"a crash came before the row")
    of_another_database = stray.with_name("ab" + "1" * 62)
    of_another_database.write_bytes(b"older than this one")
    os.utime(of_another_database, (0, database_made_at().timestamp() - 1))
    draft = stray.with_name(f"{stray.name}.new")
    draft.write_bytes(b"a crash came before it was whole")
    attachments.sweep_files(now=timezone.now())
    assert not stray.exists()
    assert not draft.exists()
    assert of_another_database.exists()
    assert attachments.content_path(unused.sha256).exists()
    attachments.sweep_files(now=timezone.now() + timedelta(hours=25))
    assert list(Attachment.objects.all()) == [used]
    assert attachments.content_path(used.sha256).exists()
    assert not attachments.content_path(unused.sha256).exists()
