"""Text in the pieces a model without a tokenizer streams."""

from __future__ import annotations

import re


def split_words(text: str) -> list[str]:
    """Words with the white space before them; joined again they are the text."""
    return re.findall(r"\s*\S+|\s+", text)
