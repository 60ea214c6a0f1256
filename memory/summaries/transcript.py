"""Renders messages as the text that a summariser reads, in chunks of a limited size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from memory.language.neutral_text import quote_speaker_lines
from memory.tokens import estimate_text
from memory.truncate import cut_middle, whole_end
from memory.types import ImagePart, Message, ReasoningPart, TextPart, ToolCallPart, ToolResultPart

RESULT_CHARS = 4_000
ARGUMENT_CHARS = 1_000


def render_message(message: Message) -> str:
    """Return one message with its speaker, and with `> ` before lines that imitate another. Omit reasoning; keep head
    and tail of long tool results."""
    lines: list[str] = []
    for part in message.parts:
        match part:
            case TextPart():
                lines.append(part.text)
            case ImagePart():
                lines.append(f"[image: {part.mime_type}]")
            case ToolCallPart():
                lines.append(f"[calls {part.name} {cut_middle(part.arguments, ARGUMENT_CHARS)}]")
            case ToolResultPart():
                lines.append(f"[{part.name} returned] {cut_middle(part.text, RESULT_CHARS)}")
            case ReasoningPart():
                pass
    text = "\n".join(line for line in lines if line.strip())
    return quote_speaker_lines(f"{message.role.capitalize()}: {text}") if text else ""


def render_transcript(messages: Sequence[Message]) -> str:
    return "\n\n".join(_lines(messages))


def split_transcript(messages: Sequence[Message], max_tokens: int) -> list[str]:
    """Return the transcript in chunks of at most `max_tokens`, with each message whole if it fits into one."""
    chunks: list[list[str]] = [[]]
    used = 0
    for line in _pieces(messages, max_tokens):
        tokens = estimate_text(line) + 2
        if used + tokens > max_tokens and chunks[-1]:
            chunks.append([])
            used = 0
        chunks[-1].append(line)
        used += tokens
    return ["\n\n".join(chunk) for chunk in chunks if chunk]


def _lines(messages: Sequence[Message]) -> Iterator[str]:
    """Yield the messages, with a line before those of each new day."""
    day: date | None = None
    for message in messages:
        text = render_message(message)
        if not text:
            continue
        if message.created_at and message.created_at.date() != day:
            day = message.created_at.date()
            yield f"[{day.isoformat()}]"
        yield text


def _pieces(messages: Sequence[Message], max_tokens: int) -> Iterator[str]:
    for line in _lines(messages):
        yield from _split(line, max_tokens)


def _split(text: str, max_tokens: int) -> Iterator[str]:
    tokens = estimate_text(text) + 2
    if tokens <= max_tokens or len(text) < 2:
        yield text
        return
    middle = len(text) // 2
    # `rfind` returns -1 for no match, which becomes 0 here.
    border = text.rfind(" ", len(text) // 4, middle) + 1 or whole_end(text, middle) or middle
    yield from _split(text[:border], max_tokens)
    yield from _split(text[border:], max_tokens)
