"""A text is written as references to the pieces of other texts that it repeats."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from agents.requests.references import LEAST_CHARS, Sources, escape, read_references, write_references

LETTERS = st.text(alphabet='ab "\\\né中😀\ud800', max_size=60)


@given(sources=st.lists(LETTERS, max_size=4), own=st.lists(LETTERS, max_size=3))
@example(sources=["abababababab" * 20], own=["abababab"])
@example(sources=[], own=["nothing to repeat"])
def test_every_repetition_is_referenced_and_the_text_is_restored(sources: list[str], own: list[str]) -> None:
    texts = {str(number): text for number, text in enumerate(sources)}
    text = escape("-".join([*own, *(source[3:] for source in sources)]))
    [segments] = write_references([text], Sources(texts))
    assert read_references(segments, texts) == text
    known = [escape(text) for text in sources]
    for segment in segments:
        if isinstance(segment, str):
            beginnings = {
                segment[at : at + LEAST_CHARS] for at in range(max(0, len(segment) - LEAST_CHARS + 1))
            }
            assert not [one for one in beginnings if any(one in text for text in known)]


def test_the_longest_of_the_first_repetitions_is_referenced() -> None:
    sources = {"short": "the meeting", "long": "the meeting is on Friday"}
    assert write_references(["the meeting is on Friday!"], Sources(sources)) == [[("long", 0, 24), "!"]]


def test_several_texts_are_written_like_each_one_alone() -> None:
    sources = Sources({"one": "the meeting is on Friday", "two": "in the harbour of Brest"})
    texts = ["the meeting is", " on Friday, in the harbour", "elsewhere", ""]
    assert write_references(texts, sources) == [write_references([text], sources)[0] for text in texts]
