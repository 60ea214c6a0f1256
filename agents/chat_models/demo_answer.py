"""Write the Demo model's answers: an introduction, a description of its input, and what it finds there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from agents.chat_models.demo_tools import describe_calls, split_calls
from agents.prompts import CONTINUE_PROMPT
from agents.types import ModelRequest
from memory.language.sentences import split_sentences
from memory.tokens import total_tokens
from memory.truncate import whole_end
from memory.types import ImagePart, Message

INTRODUCTION = (
    "I am the **Demo model**: not a language model, but a small program that shows this chat at work without a key. "
    "I cannot think or know things. I can stream an answer, show Markdown, tell you what I was given to read, and find "
    "what you said: ask *what did I say about …*. I can call tools: ask *what time is it?* or *what is 12 × 34.5?*"
)
HOW_TO_CONNECT = (
    "For real answers an administrator connects a model: any OpenAI-compatible address, such as OpenAI, DeepSeek, "
    "vLLM or a local Ollama."
)
MARKDOWN_SAMPLE = """\
Markdown, as a model would write it:

1. a list with **bold**, *italic* and `code`,
2. a [link](https://example.com),
3. and a quotation:

> The old writing can still be read under the new.

```python
def greet(name: str) -> str:
    return f"Hello, {name}!"
```

| what | shown as |
|---|---|
| a table | rows and columns |
| a formula | $a^2 + b^2 = c^2$ |
"""
MAX_FINDINGS = 5
MAX_QUOTE_CHARS = 240

_RECOLLECTION = re.compile(
    r"(?i)\b(?:what|when|where|which|who|how|do|did|have|can)\b.{0,80}?"
    r"\b(?:i|we|you|me)\b.{0,40}?\b(?:sa(?:y|id)|told?|tell|mention\w*|wr[io]te|written|remember|know|decide\w*|talk\w*)\b"
    r"(?:\s+(?:you|me|us))?(?:\s+(?:about|of|on|regarding|concerning|that))?(?P<topic>.*)"
)
_MARKDOWN_REQUEST = re.compile(
    r"(?i)\bmarkdown\b|\b(?:show|give|write|make)\b.{0,40}\b(?:table|code|list|formula)\b"
)
_GREETING = re.compile(
    r"(?i)^\W*(?:hi|hello|hey|good (?:morning|evening|day)|who are you|what (?:are you|can you do)).{0,30}$"
)
_EMPTY = (
    "about an and are at be can could did do does for from has have how if in is it just know last me my of on or our "
    "please remember said say should tell that the their then there they this time to told was we were what when "
    "where which who why will with would you your"
)
_EMPTY_WORDS = frozenset(_EMPTY.split())


def write_answer(request: ModelRequest) -> str:
    """Return the answer to the last message."""
    if not request.messages:
        return INTRODUCTION
    if request.messages[-1].text == CONTINUE_PROMPT:
        return _continue(request.messages[:-1])
    return _answer(request.messages)


def _continue(messages: tuple[Message, ...]) -> str:
    """Return the rest of the previous answer: it is generated again, which gives the same text."""
    begun = messages[-1].text if messages and messages[-1].role == "assistant" else ""
    whole = _answer(messages[:-1]) if len(messages) > 1 else INTRODUCTION
    if whole.startswith(begun):
        return whole[len(begun) :] or " (That was all.)"
    return "\n\n(I cannot find where I stopped; here it is again.)\n\n" + whole


def _answer(messages: tuple[Message, ...]) -> str:
    asked, steps = split_calls(messages)
    question = asked[-1]
    reply = describe_calls(steps) if steps else _reply(question.text.strip(), question, asked[:-1])
    return f"{reply}\n\n{_describe_input(asked, steps)}"


def _reply(text: str, question: Message, before: tuple[Message, ...]) -> str:
    if recollection := _RECOLLECTION.search(text):
        return _recollect(recollection["topic"] or text, before)
    if _MARKDOWN_REQUEST.search(text):
        return MARKDOWN_SAMPLE
    if not any(message.role == "assistant" for message in before) or _GREETING.search(text):
        return f"{INTRODUCTION}\n\n{MARKDOWN_SAMPLE}\n{HOW_TO_CONNECT}"
    return _acknowledge(text, question, before)


# --- finding sentences


@dataclass(frozen=True, slots=True)
class _Finding:
    place: str
    speaker: str
    sentence: str
    score: int
    order: int


def _recollect(topic: str, before: tuple[Message, ...]) -> str:
    """Return the sentences in view that match best, in the order they were said."""
    words = _read_words(topic)
    if not words:
        return "Tell me a word to look for, as in *what did I say about the budget?*"
    asked = ", ".join(f"**{word}**" for word in sorted(words))
    findings = sorted(_find(words, before), key=lambda finding: (-finding.score, finding.order))[
        :MAX_FINDINGS
    ]
    if not findings:
        return f"I looked for {asked} in everything I was given to read and found nothing."
    lines = [
        f"- {finding.place}, {finding.speaker}: “{finding.sentence}”"
        for finding in sorted(findings, key=lambda finding: finding.order)
    ]
    return f"I looked for {asked} in what I was given to read:\n\n" + "\n".join(lines)


def _find(words: frozenset[str], before: Iterable[Message]) -> Iterable[_Finding]:
    order = 0
    for message in before:
        if message.role == "system":
            continue
        for sentence in _sentences(message.text):
            order += 1
            score = len(words & _read_words(sentence))
            if score:
                yield _Finding(_place_of(message), _speaker_of(message), _quote(sentence), score, order)


def _place_of(message: Message) -> str:
    return {"summary": "from the summary", "recall": "recalled from memory"}.get(
        message.kind, "in this conversation"
    )


def _speaker_of(message: Message) -> str:
    if message.kind in ("summary", "recall"):
        return "in its words"
    return "you" if message.role == "user" else "I"


def _read_words(text: str) -> frozenset[str]:
    words = {_stem(word) for word in re.findall(r"\w+", text.lower()) if word not in _EMPTY_WORDS}
    return frozenset(word for word in words if len(word) > 1)


def _stem(word: str) -> str:
    """Return one form for plural and singular."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _sentences(text: str) -> list[str]:
    pieces = split_sentences(text)
    return [piece.strip() for piece in pieces if piece.strip() and not re.match(r"\s*</?\w+>\s*$", piece)]


# --- describing the input


def _acknowledge(text: str, question: Message, before: tuple[Message, ...]) -> str:
    turns = sum(1 for message in before if message.role == "user" and message.kind == "message") + 1
    quoted = _quote(text)
    images = [part for part in question.parts if isinstance(part, ImagePart)]
    seen = "".join(f"\n\nYou sent an image, {image.width} × {image.height} pixels." for image in images)
    said = f"You wrote: “{quoted}”" if quoted else "You wrote nothing."
    return f"{said}{seen}\n\nThat was message {turns} of yours that I can see. {HOW_TO_CONNECT}"


def _describe_input(messages: tuple[Message, ...], steps: tuple[Message, ...]) -> str:
    groups = {
        "system prompt": [message for message in messages if message.role == "system"],
        "summary of earlier messages": [message for message in messages if message.kind == "summary"],
        "messages of this conversation": [message for message in messages[:-1] if _is_history(message)],
        "recalled from earlier": [message for message in messages if message.kind == "recall"],
        "your question": list(messages[-1:]),
        "calls of tools and their results": list(steps),
    }
    rows = [f"| {name} | {len(group)} | {total_tokens(group):,} |" for name, group in groups.items() if group]
    table = "\n".join(["| what I was given | messages | tokens |", "|---|---|---|", *rows])
    first_line = _first_summary_line(groups["summary of earlier messages"])
    return f"{table}\n\nThe summary begins: “{first_line}”" if first_line else table


def _is_history(message: Message) -> bool:
    return message.role != "system" and message.kind not in ("summary", "recall")


def _first_summary_line(summaries: list[Message]) -> str:
    """Return the first line of the summary itself, without its tag and its introduction."""
    if not summaries:
        return ""
    body = summaries[0].text.partition("\n\n")[2] or summaries[0].text
    lines = [line.strip() for line in body.splitlines() if line.strip() and not line.startswith("<")]
    return _quote(lines[0]) if lines else ""


def _quote(text: str) -> str:
    """Return the beginning of a text. Never cut a number, because a part would be remembered as another one."""
    return text[: whole_end(text, MAX_QUOTE_CHARS)] + ("…" if len(text) > MAX_QUOTE_CHARS else "")


def split_words(text: str) -> list[str]:
    """Return the words, each with the white space before it, so that joining them restores the text."""
    return re.findall(r"\s*\S+|\s+", text)
