"""Unusual and damaged images as uploads (chatapp/files/images.py)."""

import io
import struct
from collections.abc import Callable

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from PIL import Image

from chatapp.accounts.models import User
from chatapp.files.images import clean_image

Clients = Callable[[User], Client]


def test_a_16_bit_grey_image_keeps_its_shades():
    """Scanners, microscopes and `matplotlib` write such images. `convert("RGB")` would turn all but black to white."""
    image = Image.new("I;16", (4, 1))
    for x, value in enumerate((0, 16_000, 32_000, 65_535)):
        image.putpixel((x, 0), value)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    cleaned = Image.open(io.BytesIO(clean_image(buffer.getvalue(), 1_000).content)).convert("L")
    greys = [cleaned.getpixel((x, 0)) for x in range(4)]
    assert greys[0] < greys[1] < greys[2] < greys[3]


def image_with_odd_exif() -> bytes:
    """Return a JPEG that must be turned upright, with a text as its height in the EXIF data."""
    turned = struct.pack("<HHIHH", 0x0112, 3, 1, 6, 0)
    height = struct.pack("<HHI4s", 0x0101, 2, 4, b"two\0")
    exif = b"Exif\0\0II*\0" + struct.pack("<IH", 8, 2) + height + turned + struct.pack("<I", 0)
    buffer = io.BytesIO()
    Image.new("RGB", (4, 2)).save(buffer, "JPEG", exif=exif)
    return buffer.getvalue()


def test_a_photo_with_a_damaged_exif_tag_is_cleaned():
    """Pillow raises struct.error if it rewrites such a tag."""
    assert (clean_image(image_with_odd_exif(), 1_000).width) == 2


def test_a_photo_with_a_damaged_exif_tag_can_be_uploaded(alice: User, api_client: Clients):
    file = SimpleUploadedFile("photo.jpg", image_with_odd_exif(), "image/jpeg")
    made = api_client(alice).post("/api/v1/files", {"file": file})
    assert made.status_code == 201
    assert (made.json()["mime_type"], made.json()["width"], made.json()["height"]) == ("image/jpeg", 2, 4)


def test_a_text_that_begins_like_an_image_signature_is_stored_as_text(alice: User, api_client: Clients):
    """Four matching letters must not make the text an image, which would then be refused."""
    text = b"GIF89a and WebP compared\n\nBoth can move.\n"
    client = api_client(alice)
    made = client.post("/api/v1/files", {"file": SimpleUploadedFile("notes.txt", text, "text/plain")})
    assert made.status_code == 201
    assert made.json()["mime_type"] == "text/plain"
    assert client.get(made.json()["url"]).getvalue() == text
