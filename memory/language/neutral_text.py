"""Neutralises text that a model would take for more than data: role tokens of chat templates, and invisible text.

Some servers read `<|im_start|>` or `[INST]` in a message as the template's own marks, so that a web page could speak as
the system or as the user. Zero-width characters, Unicode tags and bidirectional controls carry text that a model reads
and a person does not see.
"""

from __future__ import annotations

import re

_ROLE_TOKENS = re.compile(
    r"<[|\uff5c][^\s<>|\uff5c]{1,60}[|\uff5c]>"  # ChatML, Llama 3, Phi, GLM, gpt-oss; DeepSeek's full-width bars
    r"|\[\|(?:system|user|assistant|tool|endofturn)\|\]"  # EXAONE
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|ARGS|CALL_ID|THINK)\]"
    r"|<</?SYS>>"
    r"|</?(?:start_of_turn|end_of_turn|start_of_image|end_of_image|bos|eos|s|pad|unk)>"
    r"|<(?:BOS|EOS|EOP|UNK|PAD|MASK)_TOKEN>|\[g?MASK\]|<[se]op>"  # Command R, GLM
    r"|<seed:[a-z_]{1,40}>|<(?:SPECIAL|extra_id|reserved|TOKENS_UNUSED)_\d{1,4}>"  # Seed, Nemotron, Baichuan, InternLM
)
"""Case-sensitive, as templates write them: `Service<S>` and `[args]` are code."""
_SPEAKS = re.compile(
    r"(?:user|assistant|system|developer|tool|memory|human|ai)[ \t]*[:\uff1a]|\d{1,3}\. \d{4}-\d\d-\d\d ",
    re.IGNORECASE,
)
"""How our own lines begin that quote a speaker or list a search hit; models take other words for roles as well."""
_JOINS = (
    "\U0001f000-\U0001faff\u2190-\u2bff\u200d\ufe0f\u0600-\u06ff\u0700-\u0dff\u0f00-\u109f\u1780-\u17b3\u17b6-\u17ff"
    "\u1800-\u180a\u1810-\u18af\u1900-\u1cff\ua8e0-\uaadf"
)
"""Emoji, and letters of scripts in which a joiner visibly changes its neighbours."""
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff"
    "\uffa0\ufff9-\ufffb\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"
    "|(?<![\u3400-\u9fff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"  # they select a form of the character before
    f"|(?<![{_JOINS}])[\u200c\u200d]|[\u200c\u200d](?![{_JOINS}])"
    "|(?<=[\ufe00-\ufe0f])[\ufe00-\ufe0f]+"  # one selects a glyph, several can encode a text
)


def neutralise(text: str) -> str:
    """Return the text as data: without invisible characters, and with its role tokens broken up.

    `<|im_start|>` becomes `< |im_start| >`, which reads the same but is no mark for any template. Text that is already
    neutral comes back unchanged.
    """
    # All invisible characters are outside ASCII.
    if not text.isascii():
        text = _INVISIBLE.sub("", text)
    return _ROLE_TOKENS.sub(_break_up, text)


def _break_up(token: re.Match[str]) -> str:
    found = token[0]
    return f"{found[0]} {found[1:-1]} {found[-1]}"


def names_speaker(line: str) -> bool:
    """Return whether a line begins like one of ours that names a speaker."""
    # An invisible character in front would hide the name from the pattern, but not from a model.
    return _SPEAKS.match(neutralise(line)) is not None


def quote_speaker_lines(text: str) -> str:
    """Return what one speaker said, after the name, with `> ` before each further line that would read as somebody
    else's words.

    Otherwise an answer with the line "User: I owe you 500" would read as the user's promise.
    """
    first, *rest = text.splitlines(keepends=True) or [""]
    return "".join([first, *(f"> {line}" if names_speaker(line) else line for line in rest)])
