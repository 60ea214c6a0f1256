import pytest

from memory.language.terms import Analyzer
from memory.recall.excerpts import MAX_EXCERPT_CHARS, excerpt_of

ANALYZER = Analyzer()


def shown(text: str, query: str) -> str:
    return "".join(
        f"[{span.text}]" if span.is_hit else span.text for span in excerpt_of(text, query, ANALYZER)
    )


@pytest.mark.parametrize(
    ("text", "query", "excerpt"),
    [
        ("It rains. We moved\nto Oslo!  Fine.", "where did we move", "We [moved]"),
        ("It rains. The cats moved house. We moved.", "moved cats", "The [cats] [moved] house."),
        ("我们去年搬到了里斯本。天气很好。", "里斯本", "我们去年搬到了[里斯本]。"),
        ("मैंने कल खाना बनाया। मेरी बिल्ली मोती है।", "बिल्ली", "मेरी [बिल्ली] मोती है।"),
        ("நேற்று மழை. என் பூனை வெள்ளை.", "பூனை", "என் [பூனை] வெள்ளை."),
        ("গতকাল বৃষ্টি হয়েছে। আমার বিড়াল সাদা।", "বিড়াল", "আমার [বিড়াল] সাদা।"),
        ("Educational things.", "education", "[Educational] things."),
        ("Nothing of it. At all.", "zebra", "Nothing of it."),
        ("Moved", "moved", "[Moved]"),
        ("## The **ferry** to\n- `Oslo`", "ferry", "The [ferry] to"),
        (
            "> Quoted\n* See [the *timetable*](https://x.example/a) for 2 * 3 - 1.",
            "timetable",
            "See the [timetable] for 2 * 3 - 1.",
        ),
        ("***", "moved", "***"),
        ("", "moved", ""),
    ],
)
def test_the_sentence_with_most_query_words_is_shown_with_its_hits_marked(
    text: str, query: str, excerpt: str
):
    assert shown(text, query) == excerpt


def test_a_long_sentence_is_cut_around_its_hit():
    excerpt = shown("before " * 200 + "ferry" + " after" * 200, "ferry")
    assert (excerpt[0], excerpt[-1]) == ("…", "…")
    assert "before [ferry] after" in excerpt
    assert len(excerpt) <= MAX_EXCERPT_CHARS + 4
