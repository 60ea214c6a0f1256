"""Cleans uploaded images: checks size and format before decoding, turns them upright, and encodes them again."""

from __future__ import annotations

import io
import struct
import threading
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agents.libraries import Library
from chatapp.operations.errors import InvalidInput, TooLarge

if TYPE_CHECKING:
    from PIL import ExifTags, Image
else:
    ExifTags, Image = Library("PIL.ExifTags"), Library("PIL.Image")

EXTENSIONS = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp"}
"""The types in which images are stored."""
ACCEPTED_FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
# A decoded image takes up to 160 MB, so only two are decoded at a time.
_DECODERS = threading.BoundedSemaphore(2)
_NOT_AN_IMAGE = "This file is not an image that can be read. PNG, JPEG, WebP and GIF are accepted."


@dataclass(frozen=True, slots=True)
class CleanImage:
    """An image that this service encoded, with the pixels of the upload and nothing else."""

    content: bytes
    mime_type: str
    width: int
    height: int


def _open_image(content: bytes) -> Image.Image:
    """Read only the header; pixels are decoded after their number is checked."""
    try:
        with warnings.catch_warnings():
            # Pillow warns at a limit of its own; ours is checked before a pixel is decoded.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            return Image.open(io.BytesIO(content), formats=ACCEPTED_FORMATS)
    except Image.DecompressionBombError:
        raise _too_many_pixels() from None
    except (OSError, ValueError, SyntaxError):  # PIL's own error is an OSError
        raise InvalidInput(_NOT_AN_IMAGE, code="not_an_image") from None


def _too_many_pixels() -> TooLarge:
    return TooLarge("This image has too many pixels. Please make it smaller and upload it again.")


def _target_format(image: Image.Image) -> str:
    """Return the format to encode in. GIF becomes PNG, because a model sees the first frame only."""
    return {"GIF": "PNG", "WEBP": "WEBP", "PNG": "PNG"}.get(str(image.format), "JPEG")


def _encode_image(image: Image.Image, target: str) -> bytes:
    buffer = io.BytesIO()
    if target == "JPEG":
        # JPEG has no transparency, and Pillow raises for it.
        image.convert("RGB").save(buffer, "JPEG", quality=90)
    elif target == "WEBP":
        image.save(buffer, "WEBP", quality=90, method=3)
    else:
        image.save(buffer, "PNG")
    return buffer.getvalue()


_TURNS = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}
"""Pillow's transposition for each EXIF orientation. By name, because Pillow is imported when it is first used."""
_DAMAGED = (
    *(OSError, ValueError, SyntaxError, EOFError, IndexError, TypeError, MemoryError),
    *(AttributeError, KeyError, struct.error),
)


def _bare_pixels(image: Image.Image) -> Image.Image:
    """Return the image upright, in a plain colour mode and without metadata such as place and camera."""
    # Do not let Pillow do this: it would rewrite all tags, any of which may be damaged.
    turn = _TURNS.get(image.getexif().get(ExifTags.Base.Orientation, 1))
    image = image.transpose(Image.Transpose[turn]) if turn is not None else image
    if image.mode.startswith("I"):
        # 16-bit grey, which a plain conversion would clip at 255.
        image = image.convert("I").point(lambda value: value * (1 / 257)).convert("L")
        image.info = {}
    has_alpha = "A" in image.mode or "transparency" in image.info
    plain = image.convert("RGBA") if has_alpha else image.convert("L" if image.mode in ("1", "L") else "RGB")
    # Pillow would write this metadata, e.g. a colour profile, into the new file.
    plain.info = {}
    return plain


def clean_image(content: bytes, max_pixels: int) -> CleanImage:
    """Return the image upright and encoded again, in about 0.1 s per megapixel. Raise InvalidInput or TooLarge."""
    image = _open_image(content)
    if image.width * image.height > max_pixels:
        raise _too_many_pixels()
    target = _target_format(image)
    try:
        with _DECODERS:
            bare = _bare_pixels(image)
            encoded = _encode_image(bare, target)
    except Image.DecompressionBombError:
        raise _too_many_pixels() from None
    except _DAMAGED:
        # Damaged files make Pillow raise any of these.
        raise InvalidInput(_NOT_AN_IMAGE, code="not_an_image") from None
    return CleanImage(encoded, f"image/{target.lower()}", bare.width, bare.height)
