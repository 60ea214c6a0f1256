"""The Demo model's summaries: the telling sentences of what it was given to summarise."""

from __future__ import annotations

import re

from agents.types import ModelRequest
from memory.extractive import extract_summary
from memory.summary import bounded_summary
from memory.tokens import estimate_text, text_message
from memory.types import Message, Role

_ROLES: dict[str, Role] = {"User": "user", "Assistant": "assistant", "Tool": "tool", "System": "system"}


def write_summary(request: ModelRequest) -> str:
    """At most four fifths of the request's limit: memory asks for a quarter more than it takes."""
    text = request.messages[-1].text
    space = request.max_output_tokens * 4 // 5
    previous = bounded_summary(_read_fenced(text, "previous_summary"), space // 2)
    transcript = _read_transcript(_read_fenced(text, "conversation") or text)
    extract = extract_summary(transcript, space - estimate_text(previous) - 4)
    return f"{previous}\n\n{extract}".strip()


def _read_fenced(text: str, tag: str) -> str:
    found = re.search(rf"<{tag}>\n(.*?)\n</{tag}>", text, re.DOTALL)
    return found[1] if found else ""


def _read_transcript(text: str) -> list[Message]:
    """The utterances of a transcript as memory.transcript writes them."""
    messages: list[Message] = []
    for paragraph in text.split("\n\n"):
        speaker, colon, words = paragraph.partition(": ")
        if colon and speaker in _ROLES:
            messages.append(text_message(_ROLES[speaker], words))
        elif not re.fullmatch(r"\[\d{4}-\d\d-\d\d\]", paragraph):
            messages.append(text_message(messages[-1].role if messages else "user", paragraph))
    return messages
