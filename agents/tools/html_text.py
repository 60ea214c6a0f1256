"""Convert HTML to text whose size is bounded by that of the page."""

from __future__ import annotations

from typing import Any

import inscriptis
from inscriptis.css_profiles import CSS_PROFILES
from inscriptis.html_properties import Display
from inscriptis.model.config import ParserConfig
from inscriptis.model.html_element import HtmlElement
from inscriptis.model.tag import CustomHtmlTagHandlerMapping

_TABLE_TAGS = ("table", "tr", "td", "th")


def text_of_html(html: str) -> str:
    """Return the text that a reader sees; "" if the page shows none. A table row becomes a line, with a bar after each
    cell."""
    text: str = inscriptis.get_text(html.replace("\x00", ""), _config())  # lxml refuses NUL
    return text.strip()


def _config() -> ParserConfig:
    """Return settings without padding: aligned columns, indents and margins from a page's own styles can turn two
    megabytes into gigabytes."""
    block, cell = HtmlElement(display=Display.block), HtmlElement(suffix=" | ")
    styles = {**dict.fromkeys(("table", "tr", "ul", "ol"), block), "td": cell, "th": cell}
    in_line = dict.fromkeys(_TABLE_TAGS, _do_nothing)
    config = ParserConfig(
        css=CSS_PROFILES["strict"] | styles,
        custom_html_tag_handler_mapping=CustomHtmlTagHandlerMapping(in_line, in_line),
    )
    config.attribute_handler.attribute_mapping = {"style": _hide}
    return config


def _do_nothing(*_: Any) -> None:
    """Replace the library's own layout of tables."""


def _hide(style: str, element: HtmlElement) -> None:
    if "display:none" in style.lower().replace(" ", ""):
        element.display = Display.none
