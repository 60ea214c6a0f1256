"""Detection of text encodings (chatapp/files/text_encodings.py), with Django's translations as sample texts."""

from __future__ import annotations

import gettext
import random
import re
from pathlib import Path

import django
import pytest

from chatapp.files.text_encodings import decode_text

LEAST_LETTERS = 4
WRITINGS = (
    ("zh_Hans", "gb18030"),
    ("zh_Hant", "cp950"),
    ("ko", "cp949"),
    ("ja", "cp932"),
    ("ja", "euc_jp"),
    ("ru", "cp1251"),
    ("uk", "cp1251"),
    ("bg", "cp1251"),
)
WESTERN = ("da", "de", "es", "fi", "fr", "is", "it", "nb", "nl", "pt", "sv")


def sentences(language: str, encoding: str) -> list[str]:
    """Return Django's translations into this language that the encoding can represent, without placeholders."""
    said: set[str] = set()
    for folder in sorted(Path(django.__file__).parent.rglob("locale")):
        catalog = gettext.translation("django", folder, [language], fallback=True)
        # No public API lists the texts of a catalog: https://docs.python.org/3/library/gettext.html
        said |= {text for text in getattr(catalog, "_catalog", {}).values() if isinstance(text, str)}
    plain = (re.sub(r"%\(\w+\)[sdi]|%[sdi]|<[^>]+>|\{\w*\}|^[^\n]+: .*\n", "", text).strip() for text in said)
    return sorted(text for text in plain if text.encode(encoding, "ignore").decode(encoding) == text)


def beyond_ascii(text: str) -> int:
    return sum(char > "\x7f" for char in text)


def misread(texts: list[str], encoding: str) -> list[str]:
    return [text for text in texts if decode_text(text.encode(encoding)) != text]


@pytest.mark.parametrize(("language", "encoding"), WRITINGS)
def test_a_text_is_decoded_in_the_encoding_it_was_written_in(language: str, encoding: str):
    known = sentences(language, encoding)
    short = [text for text in known if beyond_ascii(text) >= LEAST_LETTERS]
    assert len(short) > 300
    # The bytes of a few rare characters may be more common characters in another encoding.
    assert len(misread(short, encoding)) <= 0.04 * len(short)
    chance = random.Random(1)
    longer = ["\n".join(chance.sample(short, 5)) for _ in range(200)]
    assert misread(longer, encoding) == []


@pytest.mark.parametrize("language", WESTERN)
def test_a_western_text_is_not_decoded_in_another_encoding(language: str):
    """The bytes of western letters are also Chinese, Japanese or Korean in pairs, and Cyrillic alone."""
    accented = [text for text in sentences(language, "cp1252") if beyond_ascii(text)]
    assert len(accented) > 50
    assert misread(accented, "cp1252") == []


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Привет, мир!", "cp1251"),
        ("ИВАНОВ;ПЁТР;5\nКОВАЛЕНКО;ЇЖАК;7\n", "cp1251"),
        ("# Настройки\nDEBUG = True  # для разработки и отладки\n", "cp1251"),
        ("姓名,城市\n王小明,臺北\n", "cp950"),
        ("안녕하세요", "cp949"),
        ("이름;금액\n김민수;500\n", "cp949"),
        ("こんにちは", "cp932"),
        ("ﾒﾓ：アンケートの結果です", "cp932"),
        ("メモ:明日は東京へ行きます", "euc_jp"),
        ("你好，世界", "gb18030"),
        ("ÄÖÜ äöü ß", "cp1252"),
        ("5 µm ± 2 °C, ½ m², 20 £", "cp1252"),
        ("“Ça” — «là»", "cp1252"),
    ],
)
def test_a_few_words_are_enough_to_detect_an_encoding(text: str, encoding: str):
    assert decode_text(text.encode(encoding)) == text


@pytest.mark.parametrize("text", ["naïve café, ", "Привет, мир! ", "你好，世界。", "ÄÖÜ äöü ß "])
def test_a_long_utf_8_text_with_one_invalid_byte_is_decoded_as_utf_8(text: str):
    content = (text * 10).encode()
    assert decode_text(content + b"\xff" + content) == f"{text * 10}\ufffd{text * 10}"


@pytest.mark.parametrize("text", ["naïve café", "Привет, мир", "\ufeff你好，世界", "So ein Müßiggang 😀"])
def test_a_utf_8_text_may_be_truncated_inside_a_character(text: str):
    assert decode_text(f"{text}é".encode()[:-1]) == text.removeprefix("\ufeff") + "\ufffd"


def test_bytes_that_are_invalid_in_every_encoding_are_no_text():
    assert decode_text(bytes(range(128, 256))) is None
