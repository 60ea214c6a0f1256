"""chatapp/files/images.py: what an upload becomes."""

import io
import struct
from collections.abc import Callable

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from PIL import Image

from chatapp.accounts.models import User
from chatapp.files.images import clean_image

Clients = Callable[[User], Client]


def test_an_image_of_16_bit_grey_stays_what_it_shows():
    """As scanners, microscopes and `matplotlib` write them. `convert("RGB")` clips: all but black becomes white."""
    image = Image.new("I;16", (4, 1))
    for x, value in enumerate((0, 16_000, 32_000, 65_535)):
        image.putpixel((x, 0), value)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    cleaned = Image.open(io.BytesIO(clean_image(buffer.getvalue(), 1_000).content)).convert("L")
    greys = [cleaned.getpixel((x, 0)) for x in range(4)]
    assert greys[0] < greys[1] < greys[2] < greys[3]


def image_with_odd_exif() -> bytes:
    """Return a JPEG that has to be turned, and whose height is a text in its EXIF data."""
    turned = struct.pack("<HHIHH", 0x0112, 3, 1, 6, 0)
    height = struct.pack("<HHI4s", 0x0101, 2, 4, b"two\0")
    exif = b"Exif\0\0II*\0" + struct.pack("<IH", 8, 2) + height + turned + struct.pack("<I", 0)
    buffer = io.BytesIO()
    Image.new("RGB", (4, 2)).save(buffer, "JPEG", exif=exif)
    return buffer.getvalue()


def test_a_photo_with_a_damaged_tag_is_no_error_of_ours():
    """`clean_image`: "Raise InvalidInput or TooLarge". Pillow's own rewriting of the tags raises struct.error."""
    assert (clean_image(image_with_odd_exif(), 1_000).width) == 2


def test_uploading_a_photo_with_a_damaged_tag_is_answered(alice: User, api_client: Clients):
    file = SimpleUploadedFile("photo.jpg", image_with_odd_exif(), "image/jpeg")
    client = api_client(alice)
    client.raise_request_exception = False
    assert client.post("/api/v1/files", {"file": file}).status_code in (201, 422)


def test_a_text_that_begins_like_the_name_of_a_format_is_a_text(alice: User, api_client: Clients):
    """ "The type is read from the content": four letters alone make an image of it, which is then refused."""
    file = SimpleUploadedFile("notes.txt", b"GIF89a and WebP compared\n\nBoth can move.\n", "text/plain")
    assert api_client(alice).post("/api/v1/files", {"file": file}).status_code == 201
