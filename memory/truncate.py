"""Cuts without a model: a message to a size, and a list of messages to a budget."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from memory.tokens import MESSAGE_OVERHEAD, total_tokens, with_parts, without_parts
from memory.turns import bind_groups, starts_turn
from memory.types import ImagePart, Message, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart

TRUNCATED = "[Truncated]"
PINNED_SHARE = 0.5
LEAST_MESSAGE_TOKENS = 16
"""Tokens that a message keeps when it is cut to make room: its overhead, the mark and a few words."""

LONGEST_UNIT = 200
_UNIT_CHARS = r"[A-Za-z0-9À-ɏͰ-ԯ_./@:#+-]+"
"""Words, numbers and identifiers, in scripts that separate them by spaces."""
_UNIT = re.compile(_UNIT_CHARS)
_UNIT_BEFORE = re.compile(f"{_UNIT_CHARS}$")

Cutter = Callable[[str, int], str]


def _is_within(text: str, at: int) -> bool:
    return 0 < at < len(text) and _UNIT.match(text[at - 1]) is not None and _UNIT.match(text[at]) is not None


def whole_end(text: str, at: int) -> int:
    """Return the last place up to `at` that is not inside a word, number or identifier; `at` if it is inside an
    overlong one."""
    if not _is_within(text, at):
        return at
    start, end = _unit_around(text, at)
    return start if end - start <= LONGEST_UNIT else at


def whole_start(text: str, at: int) -> int:
    """Return the first place from `at` on that is not inside a word, number or identifier; `at` if it is inside an
    overlong one."""
    if not _is_within(text, at):
        return at
    start, end = _unit_around(text, at)
    return end if end - start <= LONGEST_UNIT else at


def _unit_around(text: str, at: int) -> tuple[int, int]:
    """Return (start, end) of the unit around `at`, looking a little further than the longest unit."""
    before = _UNIT_BEFORE.search(text, max(0, at - LONGEST_UNIT), at)
    after = _UNIT.match(text, at, at + LONGEST_UNIT)
    return before.start() if before else at, after.end() if after else at


def split_whole(text: str, most_chars: int) -> Iterator[str]:
    """Yield the text in pieces of at most `most_chars`, each of whole words, numbers and identifiers. Skip one that is
    longer by itself."""
    start = 0
    while len(text) - start > most_chars:
        latest = start + most_chars
        end = following = text.rfind(" ", start + most_chars // 2, latest) + 1 or whole_end(text, latest)
        if end <= start or _is_within(text, end):
            unit = _UNIT_BEFORE.search(text, start, latest)
            rest = _UNIT.match(text, latest)
            end, following = unit.start() if unit else latest, rest.end() if rest else latest
        if piece := text[start:end].strip():
            yield piece
        start = following
    if piece := text[start:].strip():
        yield piece


def cut_end(text: str, char_limit: int) -> str:
    """Return the beginning of a text with a mark, in at most `char_limit` characters if the mark fits."""
    if len(text) <= char_limit:
        return text
    return text[: whole_end(text, max(0, char_limit - len(TRUNCATED) - 1))] + "\n" + TRUNCATED


def cut_middle(text: str, char_limit: int) -> str:
    """Return two thirds head and one third tail, with the number of omitted characters between them."""
    if len(text) <= char_limit:
        return text
    mark = f"\n{TRUNCATED} {len(text) - char_limit:,} characters left out\n"
    room = max(0, char_limit - len(mark))
    head, tail = room - room // 3, room // 3
    return text[: whole_end(text, head)] + mark + text[whole_start(text, len(text) - tail) :]


def cut_message(message: Message, char_limit: int, cut: Cutter = cut_end) -> Message:
    """Return the message with at most `char_limit` characters in all its parts; itself if it is short enough.

    Long parts are cut first. Arguments of a tool call stay valid JSON.
    """
    if message.is_plain and len(message.text) <= char_limit:
        return message
    sizes = [_char_count(part) for part in message.parts]
    if sum(sizes) <= char_limit:
        return message
    cap = level(sizes, char_limit)
    return with_parts(message, tuple(_cut_part(part, cap, cut) for part in message.parts))


def level(sizes: Sequence[int], room: int) -> int:
    """Return the cap with which the sizes add up to at most `room`: small ones stay whole, large ones share the
    rest."""
    left = room
    for done, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - done)
        if size > share:
            return max(0, share)
        left -= size
    return max(sizes, default=0)


def _char_count(part: Part) -> int:
    match part:
        case TextPart() | ReasoningPart() | ToolResultPart():
            return len(part.text)
        case ToolCallPart():
            return len(part.arguments)
        case ImagePart():
            return 0


def _cut_part(part: Part, char_limit: int, cut: Cutter) -> Part:
    match part:
        case TextPart() | ReasoningPart() | ToolResultPart():
            return part if len(part.text) <= char_limit else replace(part, text=cut(part.text, char_limit))
        case ToolCallPart():
            return part if len(part.arguments) <= char_limit else _cut_call(part, char_limit)
        case ImagePart():
            return part


def _cut_call(part: ToolCallPart, char_limit: int) -> ToolCallPart:
    """Return the call with valid JSON within the limit. Escapes count, so that it is not cut again."""
    head = part.arguments[: max(0, char_limit - 20)]
    arguments = json.dumps({"truncated": head}, ensure_ascii=False)
    while head and len(arguments) > char_limit:
        head = head[: len(head) - max(1, (len(arguments) - char_limit) // 2)]
        arguments = json.dumps({"truncated": head}, ensure_ascii=False)
    return ToolCallPart(part.call_id, part.name, arguments)


def cut_to_tokens(message: Message, tokens: int) -> Message:
    """Return the message in at most `tokens` if possible: drop its reasoning, name its images, cut the middle of
    texts."""
    if message.tokens <= tokens:
        return message
    message = without_parts(message, ReasoningPart)
    if message.tokens > tokens:
        message = _name_images(message)
    whole, limit = message, sum(_char_count(part) for part in message.parts)
    while message.tokens > tokens and limit > 0:
        share = max(0, tokens - MESSAGE_OVERHEAD) / message.tokens
        # Decrease the limit each time, so that the loop ends even if the estimate stays the same.
        limit = min(limit - 1, int(limit * min(share, 0.95)))
        # Cut the whole message each time, so that the mark counts everything that is missing.
        message = cut_message(whole, limit, cut_middle if limit > 200 else _cut_plain)
    return message


def _cut_plain(text: str, char_limit: int) -> str:
    if len(text) <= char_limit:
        return text
    return cut_end(text, char_limit) if char_limit > 2 * len(TRUNCATED) else TRUNCATED


def _name_images(message: Message) -> Message:
    if not any(isinstance(part, ImagePart) for part in message.parts):
        return message
    named = (
        TextPart(f"[image: {part.mime_type}]") if isinstance(part, ImagePart) else part
        for part in message.parts
    )
    return with_parts(message, tuple(named))


def shrink_messages(messages: Sequence[Message], tokens: int) -> tuple[Message, ...]:
    """Return the messages in at most `tokens` together if possible. Cut the long ones first, and never the question."""
    if total_tokens(messages) <= tokens:
        return tuple(messages)
    asked = sum(message.tokens for message in messages if message.kind == "question")
    sizes = [message.tokens for message in messages if message.kind != "question"]
    cap = max(level(sizes, max(0, tokens - asked)), LEAST_MESSAGE_TOKENS)
    return tuple(
        message if message.kind == "question" else cut_to_tokens(message, cap) for message in messages
    )


def find_question(messages: Sequence[Message]) -> int | None:
    """Return the index of the question being answered: the message marked as the question, else the user's last one."""
    fallback: int | None = None
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].kind == "question":
            return index
        if fallback is None and starts_turn(messages[index]):
            fallback = index
    return fallback


def is_fixed(message: Message) -> bool:
    """Return whether it is the system prompt or the profile, which come first in every request and are never
    summarised. A hook's system message is neither: it stays where it was put."""
    return (message.role == "system" and message.kind != "injected") or message.kind == "profile"


def body_tokens(messages: Iterable[Message]) -> int:
    """Return the tokens of all messages but the fixed ones."""
    return sum(message.tokens for message in messages if not is_fixed(message))


def is_frame(message: Message) -> bool:
    """Return whether it frames the history: the system prompt, the profile, the summary or its reminder."""
    return is_fixed(message) or message.kind in ("summary", "reminder")


def choose_pins(
    messages: Sequence[Message],
    budget_tokens: int,
    question: int | None = None,
    question_tokens: int = 0,
) -> set[int]:
    """Return the indexes that pins keep: pinned messages, the results of a pinned call, and the question of a pinned
    reply.

    If they exceed half of the budget together with the question, the oldest messages sent during a run lose their pin,
    then the oldest others. `question` is its index; if it is not among the messages, `question_tokens` is its size.
    All sizes are estimates.
    """
    groups = bind_groups(messages)
    if question is not None:
        question_tokens = messages[question].tokens
    room = int(budget_tokens * PINNED_SHARE) - question_tokens
    pinned = [(start, end) for start, end in groups if _is_pinned(messages[start:end])]
    pinned = [(start, end) for start, end in pinned if start != question and not is_frame(messages[start])]
    asked = _asked_by(messages) if pinned else []
    chosen: set[int] = set()
    for start, end in sorted(pinned, key=lambda group: (messages[group[0]].kind == "injected", -group[0])):
        held = {at for at in (*range(start, end), asked[start]) if at is not None and at != question}
        # A question that two pinned replies share is counted once.
        cost = sum(messages[at].tokens for at in held - chosen)
        if cost <= room:
            chosen |= held
            room -= cost
    return chosen


def _asked_by(messages: Sequence[Message]) -> list[int | None]:
    """Return for each message the user message it answers; None for a hook's system message."""
    asked: list[int | None] = []
    latest: int | None = None
    for index, message in enumerate(messages):
        latest = index if starts_turn(message) else latest
        asked.append(None if message.role == "system" else latest)
    return asked


def smart_truncate(messages: Sequence[Message], room: int, keep_recent: int) -> tuple[Message, ...]:
    """Return the request with at most `room` tokens beside its system prompt and profile, in unchanged order.

    Keep pinned messages in place while they fit, then the longest suffix. Shorten long ones of the `keep_recent` newest
    messages before dropping any, because a tool loop that loses its last result calls again. The summary gives way to
    the question, everything else to both. The result does not begin with a reply to nothing, and no call is separated
    from its results. Expects repaired tool calls, and a question that fits.
    """
    if body_tokens(messages) <= room:
        return tuple(messages)
    fixed = [message for message in messages if is_fixed(message)]
    frame = [message for message in messages if not is_fixed(message) and is_frame(message)]
    rest = [message for message in messages if not is_frame(message)]
    question = sum(message.tokens for message in rest if message.kind == "question")
    shrunk: Sequence[Message] = shrink_messages(frame, (room - question) // 2)
    # A message has a minimum size. If the frame cannot shrink enough, the question comes first.
    if total_tokens(shrunk) > room - question:
        shrunk = []
    _, kept = squeeze_messages(rest, room - total_tokens(shrunk), keep_recent)
    # A summary is sent as a user message, so a reply may follow it.
    return (*fixed, *shrunk, *(kept if shrunk else without_leading_replies(kept)))


def squeeze_messages(
    messages: Sequence[Message], room: int, keep_recent: int
) -> tuple[list[Message], tuple[Message, ...]]:
    """Return (dropped, kept), so that the kept messages take at most `room` estimated tokens.

    Drop the oldest, down to the `keep_recent` newest; shorten the long ones of those, the newest turn last; then drop
    the oldest after all, pinned ones last. A question among them stays verbatim.
    """
    gone, kept = _drop_oldest(messages, room, keep_recent)
    if total_tokens(kept) > room:
        kept = _shorten_older(kept, room)
        more, kept = _drop_oldest(kept, room, 0)
        gone += more
    return gone, tuple(kept)


def _drop_oldest(messages: Sequence[Message], room: int, keep: int) -> tuple[list[Message], list[Message]]:
    """Return (dropped, kept). Drop groups before the `keep` newest messages, oldest first: unpinned ones, then, if
    `keep` is 0, pinned ones."""
    total = total_tokens(messages)
    leaving: set[int] = set()
    groups = [group for group in bind_groups(messages) if group[1] <= len(messages) - keep]
    for pinned in (False, True) if keep == 0 else (False,):
        for start, end in groups:
            if total <= room:
                break
            if messages[start].kind != "question" and _is_pinned(messages[start:end]) == pinned:
                leaving.update(range(start, end))
                total -= total_tokens(messages[start:end])
    gone = [message for index, message in enumerate(messages) if index in leaving]
    return gone, [message for index, message in enumerate(messages) if index not in leaving]


def _is_pinned(group: Sequence[Message]) -> bool:
    return any(message.pinned for message in group)


def _shorten_older(messages: Sequence[Message], room: int) -> list[Message]:
    border = max((index for index, message in enumerate(messages) if starts_turn(message)), default=0)
    older, newest = messages[:border], messages[border:]
    if total_tokens(newest) > room // 2:
        newest = shrink_messages(newest, max(room // 2, room - total_tokens(older)))
    return [*shrink_messages(older, room - total_tokens(newest)), *newest]


def without_leading_replies(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages from the first user message on: a reply to nothing confuses models, and some providers reject
    it."""
    first = next((index for index, message in enumerate(messages) if message.role == "user"), len(messages))
    return tuple(messages[first:])
