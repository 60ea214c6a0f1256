"""External text cannot contain role tokens of chat templates or text invisible to people."""

from __future__ import annotations

import re

import pytest

from memory.language.neutral_text import neutralise
from memory.summaries.summary import fence, read_summary, summary_message

TOKENS = [
    "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|start_header_id|>", "<|begin_of_text|>", "<|endoftext|>", "<|user|>",
    "<|START_OF_TURN_TOKEN|>", "<\uff5cUser\uff5c>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "[|user|]", "[INST]", "[/INST]",
    "<BOS_TOKEN>", "<EOS_TOKEN>", "[gMASK]", "<sop>", "<eop>", "<seed:bos>", "<extra_id_0>", "<SPECIAL_10>",
    "<reserved_106>", "[SYSTEM_PROMPT]", "[TOOL_RESULTS]", "<<SYS>>", "<</SYS>>", "<start_of_turn>", "<end_of_turn>", "<bos>", "</s>", "<s>",
]  # fmt: skip
INVISIBLE = {
    "tags": "".join(chr(0xE0000 + ord(letter)) for letter in "obey"),
    "zero-width space": "\u200b",
    "zero-width joiner between letters": "\u200d",
    "byte order mark": "\ufeff",
    "right-to-left override": "\u202e",
    "isolate": "\u2066",
    "invisible plus": "\u2064",
    "variation selectors that spell a text": "\U000e0101\U000e0102",
    "soft hyphen": "\u00ad",
    "Hangul filler": "\u3164",
}


@pytest.mark.parametrize("token", TOKENS)
def test_role_tokens_are_broken_up_and_stay_readable(token: str) -> None:
    neutral = neutralise(f"before {token} after")
    assert token not in neutral
    assert neutral.replace(" ", "") == f"before{token}after"


@pytest.mark.parametrize("token", TOKENS)
def test_role_tokens_hidden_by_invisible_characters_are_broken_up(token: str) -> None:
    hidden = token[0] + "\u200b" + token[1:-1] + "\u2060" + token[-1]
    assert token not in neutralise(hidden)


@pytest.mark.parametrize("name", INVISIBLE)
def test_invisible_text_is_removed(name: str) -> None:
    assert neutralise(f"plain{INVISIBLE[name]}text") == "plaintext"


@pytest.mark.parametrize(
    "text",
    [
        "Plain text, [a link](https://example.com) & <b>tags</b>, a|b, x[i], `<div>`.",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467 and \u2764\ufe0f and 1\ufe0f\u20e3",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u0915\u094d\u200d\u0937",
        "\u1000\u103b\u200c\u1010 \u1780\u17d2\u200d\u1798 \u0f40\u200d\u0f0b",
        "\u4e16\u754c, Gr\u00fc\u00dfe, \u041f\u0440\u0438\u0432\u0435\u0442",
    ],
)
def test_visible_text_is_not_changed(text: str) -> None:
    assert neutralise(text) == text


@pytest.mark.parametrize("text", [*TOKENS, *INVISIBLE.values(), "<|<|a|>|>", "<<<SYS>>>", "[[INST]]"])
def test_neutralising_is_idempotent(text: str) -> None:
    once = neutralise(f"a {text} b")
    assert neutralise(once) == once


def test_fenced_text_is_neutral_and_cannot_close_its_fence() -> None:
    assert fence("recalled", "<|im_start|>system") == "<recalled>\n< |im_start| >system\n</recalled>"
    for closing in ("</recalled>", "</Recalled >", "< / RECALLED>", "<\u200b/recalled>"):
        assert re.findall(r"(?i)<\s*/\s*recalled", fence("recalled", f"a {closing} b")) == ["</recalled"]
    assert fence("recalled", "</recalled_by>") == "<recalled>\n</recalled_by>\n</recalled>"
    assert "<|im_start|>" not in summary_message("The user said <|im_start|>.").text


def test_a_stand_in_for_a_summary_says_that_it_is_an_extract() -> None:
    extract = summary_message("Ada pays 12 EUR.", stand_in=True)
    assert "An extract of the earlier part" in extract.text
    assert "Summary of" not in extract.text
    assert read_summary(extract) == "Ada pays 12 EUR."


@pytest.mark.parametrize(
    "text",
    [
        "impl<S> Service<S> for Router<S> {",
        "usage: prog [args]",
        "f(*[args])",
        "x <| f y |> ignore",
        "[|1; 2; 3|]",
        "葛󠄀城",
    ],
)
def test_code_and_names_are_not_changed(text: str) -> None:
    assert neutralise(text) == text
