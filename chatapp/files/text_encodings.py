"""Guesses the encoding of a text that does not name one, by how plausible its letters are."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from typing import NamedTuple

_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
SAMPLE_CHARS = 10_000
LEAST_LETTERS = 2
LEAST_SOUND = 20
"""Valid non-ASCII characters that UTF-8 needs for each damaged one: other encodings seldom contain any."""
LEAST_LIKENESS = 0.6
_WORD = re.compile(r"[^\W\d_]+")
# Requires a vowel, because umlauts in a row do not decode to one.
_CYRILLIC_WORD = re.compile("(?=.*(?i:[аеёиоуыэюяєії]))([А-ЯЁЂЃЄ-Џ]?[а-яёђѓє-џґ]+|[А-ЯЁЂЃЄ-ЏҐ]{2,})")
# Excludes punctuation, which is the same in Chinese, Japanese and Korean.
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f\u2010-\u206f\u3000-\u303f\uff00-\uffef]")
# Typographical signs, which western texts contain beside their letters, or alone.
_SIGNS = dict.fromkeys(map(ord, "’‘“”„–—…«»€°§\xa0"), " ")


def _double_byte(encoding: str, rows: bytes, trails: bytes) -> Callable[[str], list[str]]:
    """Return a function that finds the characters in the rows of an encoding that hold its common characters."""
    common = re.compile(b"[%b][%b]" % (rows, trails))

    def find(text: str) -> list[str]:
        return [
            char for char in _BEYOND_ASCII.findall(text) if common.fullmatch(char.encode(encoding, "replace"))
        ]

    return find


def _cyrillic(text: str) -> list[str]:
    """Return the letters of Cyrillic words, if these are the majority. Western words mix accents and plain letters."""
    words = [word for word in _WORD.findall(text) if len(word) > 1 and not word.isascii()]
    found = [word for word in words if _CYRILLIC_WORD.fullmatch(word)]
    return list("".join(found).lower()) if 2 * len(found) > len(words) else []


class _Writing(NamedTuple):
    encoding: str
    find_common: Callable[[str], list[str]]
    frequent: frozenset[str]
    """The characters that make up about half of a text."""


_KANA = frozenset(map(chr, range(0x3041, 0x3100)))
_WRITINGS = (
    _Writing(
        "gb18030",
        _double_byte("gb2312", rb"\xb0-\xd7", rb"\xa1-\xfe"),
        frozenset(
            "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面而"
            "方后多定行学法所民得经"
        ),
    ),
    _Writing(
        "cp950",
        _double_byte("cp950", rb"\xa4-\xc6", rb"\x40-\xfe"),
        frozenset(
            "的一是在不了有和人這中大為上個國我以要他時來用們生到作地於出就分對成會可主發年動同工也能下過子說產種面而"
            "方後多定行學法所民得經"
        ),
    ),
    _Writing(
        "cp949",
        _double_byte("euc_kr", rb"\xb0-\xc8", rb"\xa1-\xfe"),
        frozenset(
            "이다는을의에가고하지한로기사를도어자인그정리은시대나서해과라수일상보제전부원국으습니요않들있여아만주면안스성동장"
            "위용세문경화공신관업구비개모소유조선생방실중내물회계민음"
        ),
    ),
    _Writing("cp932", _double_byte("cp932", rb"\x82\x83\x88-\x97", rb"\x40-\xfc"), _KANA),
    _Writing("euc_jp", _double_byte("euc_jp", rb"\xa4\xa5\xb0-\xcf", rb"\xa1-\xfe"), _KANA),
    _Writing("cp1251", _cyrillic, frozenset("оеаинтсрвлкмдпуяь")),
)


def decode_text(content: bytes) -> str | None:
    """Return the text, or None if no known encoding fits all bytes."""
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS.items() if content.startswith(mark)), "utf-8")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        # Spreadsheets and editors still write Windows encodings.
        return _damaged_utf_8(content, error) or _in_an_encoding_of_windows(content)


def _damaged_utf_8(content: bytes, first_error: UnicodeDecodeError) -> str | None:
    """Return the text with U+FFFD for damaged bytes, if they are few or if the text was cut inside its last character;
    None if it is in another encoding."""
    text = content.decode("utf-8-sig", "replace")
    damaged = text.count("\ufffd")
    sound = sum(char > "\x7f" for char in text) - damaged
    is_cut = first_error.reason == "unexpected end of data"
    return text if sound >= (LEAST_LETTERS if is_cut else LEAST_SOUND * damaged) else None


def _in_an_encoding_of_windows(content: bytes) -> str | None:
    best = content.decode("cp1252", "replace")
    likeness = LEAST_LIKENESS + _western_share(_sample(best))
    for writing in _WRITINGS:
        try:
            text = content.decode(writing.encoding)
        except UnicodeDecodeError:
            continue
        if (found := _likeness(_sample(text), writing)) > likeness:
            best, likeness = text, found
    # Five bytes are undefined in cp1252, so a text with one of them is in another encoding.
    return None if "\ufffd" in best else best


def _sample(text: str) -> str:
    """Return the part around the first non-ASCII letter, which may come late in a table."""
    found = _BEYOND_ASCII.search(text)
    first = found.start() if found else 0
    return text[max(0, first - 100) : first + SAMPLE_CHARS]


def _western_share(text: str) -> float:
    """Return the share of accented letters in words that also have plain letters and an ordinary case."""
    plain = text.translate(_SIGNS)
    seen = sum(char > "\x7f" for char in plain)
    accented = 0
    for word in _WORD.findall(plain):
        beyond = sum(char > "\x7f" for char in word)
        if beyond < len(word) and (word.isupper() or word[1:].islower()):
            accented += beyond
    return accented / seen if seen else 1.0


def _likeness(text: str, writing: _Writing) -> float:
    """Return the share of common letters plus that of the most frequent ones: 0.0 to 2.0."""
    letters = _BEYOND_ASCII.findall(text)
    if len(letters) < LEAST_LETTERS:
        return 0.0
    common = writing.find_common(text)
    return (len(common) + sum(letter in writing.frequent for letter in common)) / len(letters)
