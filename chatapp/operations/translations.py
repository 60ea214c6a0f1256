"""Translates text whose origin does not know the language: labels of tables, and sentences of checks, errors and lower
packages. Pages translate their own text where they write it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from babel.messages.pofile import read_po
from django import template
from django.conf import settings
from django.db.models import Model
from django.utils.html import format_html, format_html_join
from django.utils.translation import get_language, gettext_lazy, override, to_locale

register = template.Library()

SENTENCE_CONTEXT = "said"
"""The context of these sentences in the catalogue. The placeholder is `{}`, and `{0}`, `{1}` in translations."""
_OUTSIDE = r"(?![^(]*\))"
_SEPARATORS = (
    (re.compile(rf"(?<=[.!?…]) (?=[A-Z]){_OUTSIDE}"), ""),
    (re.compile(f"; {_OUTSIDE}"), "；"),
    (re.compile(f": {_OUTSIDE}"), "："),
    (re.compile(f", {_OUTSIDE}"), "，"),
)
"""Separators between parts of a sentence, outside brackets, in English and in Chinese."""
_PLACE = r"((?:[^()]|\([^()]*\))*?)"
"""A value of a placeholder. Brackets in it must be closed."""
_IN_BRACKETS = re.compile(r"([^(]+) \((.+)\)", re.DOTALL)
_TEXT = r'("(?:[^"\\]|\\.)*")'
_ENTRY = re.compile(rf"^  {_TEXT}: {_TEXT},$", re.MULTILINE)
"""A sentence of the server in the page's own catalogue, which the panel uses, too."""
MAX_CHARS = 2_000
"""Longer sentences are not translated, because they may contain text of a provider."""


def translate_labels(tables: Iterable[type[Model]]) -> None:
    """Translate names, help and choices of tables and columns when they are shown.

    Django derives most of these texts from names in the code. Migrations compare the English and see no change.
    """
    for table in tables:
        meta = table._meta
        meta.verbose_name = _label(meta.verbose_name)
        meta.verbose_name_plural = _label(meta.verbose_name_plural)
        for column in chain(meta.local_fields, meta.local_many_to_many):
            column.verbose_name = _label(column.verbose_name)
            column.help_text = _label(column.help_text)
            if column.choices:
                column.choices = [(value, _label(label)) for value, label in column.flatchoices]


def _label(text: Any) -> Any:
    with override(None):  # the English text, also of lazy strings
        english = str(text)
    return gettext_lazy(english) if english else ""


@register.filter("translated")
def translate_sentence(sentence: str) -> str:
    """Return the sentence in the language of the page, or unchanged if the catalogue does not contain it."""
    known, patterns = _catalogue(get_language() or settings.LANGUAGE_CODE)
    if not known or len(sentence) > MAX_CHARS:
        return sentence
    return _translate(sentence, known, patterns) or sentence


_Patterns = list[tuple[re.Pattern[str], str]]


def _translate(sentence: str, known: dict[str, str], patterns: _Patterns) -> str | None:
    """Translate the whole sentence, its parts, or a pattern with placeholders. Return None if none is known."""
    if sentence in known:
        return known[sentence]
    for between, joint in _SEPARATORS:
        parts = between.split(sentence)
        translated = [_translate(part, known, patterns) for part in parts] if len(parts) > 1 else [None]
        if all(translated):
            return joint.join(map(str, translated))
    if (found := _IN_BRACKETS.fullmatch(sentence)) and (what := _translate(found[1], known, patterns)):
        return f"{what}（{_translate(found[2], known, patterns) or found[2]}）"
    for pattern, translation in patterns:
        if found := pattern.fullmatch(sentence):
            filled = [_translate(part.strip(), known, patterns) or part for part in found.groups()]
            return translation.format(*filled)
    return None


@register.filter("with_code")
def mark_code(sentence: str) -> str:
    """Return the sentence as HTML, with text between backticks as code."""
    parts = sentence.split("`")
    pieces = [format_html("<code>{}</code>" if at % 2 else "{}", part) for at, part in enumerate(parts)]
    return format_html_join("", "{}", ((piece,) for piece in pieces))


@lru_cache(maxsize=len(settings.LANGUAGES))
def _catalogue(language: str) -> tuple[dict[str, str], _Patterns]:
    """Return (translations by English sentence, patterns with placeholders, the longest first)."""
    catalogue = Path(settings.LOCALE_PATHS[0], to_locale(language), "LC_MESSAGES", "django.po")
    if not catalogue.exists():
        return {}, []
    with catalogue.open("rb") as file:
        said = {
            str(entry.id): str(entry.string) for entry in read_po(file) if entry.context == SENTENCE_CONTEXT
        }
    if (of_page := settings.BASE_DIR / f"static/app/js/i18n/{language.partition('-')[0]}_server.js").exists():
        said |= {
            json.loads(english): json.loads(found) for english, found in _ENTRY.findall(of_page.read_text())
        }
    # Longest first, because a short pattern would also match the sentence of a longer one.
    with_places = sorted((text for text in said if "{}" in text), key=len, reverse=True)
    return said, [(_pattern_of(text), said[text]) for text in with_places]


def _pattern_of(text: str) -> re.Pattern[str]:
    return re.compile(_PLACE.join(map(re.escape, text.split("{}"))), re.DOTALL)
