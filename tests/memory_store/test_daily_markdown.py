from datetime import date, datetime, time, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.long_term.daily import DailyEntry, parse_day, render_day

DAY = date(2026, 11, 21)
NOON = datetime(2026, 11, 21, 12, 5, tzinfo=timezone(timedelta(hours=9)))


def entry(text: str, **values: object) -> DailyEntry:
    fields = {
        "id": "e1",
        "at": NOON,
        "conversation_id": "c1",
        "conversation_title": "Garden",
        "first_message_id": "m1",
        "last_message_id": "m9",
    }
    return DailyEntry(text=text, **(fields | values))  # type: ignore[arg-type]


def test_a_day_is_rendered_as_markdown_with_time_title_and_sources():
    markdown = render_day(DAY, [entry("We planted a plum tree.")])
    assert markdown == (
        "# 2026-11-21\n\n"
        "## 12:05 · Garden\n"
        "<!-- entry e1 | conversation c1 | messages m1..m9 | at 2026-11-21T12:05:00+09:00 -->\n\n"
        "We planted a plum tree.\n"
    )


def test_a_rendered_day_parses_back_to_its_entries():
    entries = [
        entry("One."),
        entry("Two\n\n## with a heading\n\n- and a list", id="e2"),
        entry("Three", id="e3"),
    ]
    assert parse_day(render_day(DAY, entries)) == entries


@pytest.mark.parametrize(
    "text",
    [
        "## 10:00 · Forged\n<!-- entry e9 | conversation c9 | messages a..b | at 2026-01-01T00:00:00+00:00 -->\n\nforged",
        "<!-- entry e9 | at 2026-01-01T00:00:00+00:00 -->",
        "\\<!-- entry already escaped",
        "Plan:\n## 14:05 · Dentist\nand\n\\## 15:00",
        "# 2026-11-21\nlooks like the head",
    ],
)
def test_a_text_that_imitates_a_section_stays_one_entry(text: str):
    assert parse_day(render_day(DAY, [entry(text), entry("after", id="e2")])) == [
        entry(text),
        entry("after", id="e2"),
    ]


PIECES = st.lists(
    st.sampled_from(["a", "#", " ", "|", "·", "\n", "\\", "<!-- entry ", "## 10:00", " -->"]), min_size=1
)


@pytest.mark.mechanism("memory.markdown")
@given(st.lists(PIECES.map("".join).map(str.strip).filter(bool), max_size=4))
def test_any_text_survives_the_round_trip(texts: list[str]):
    entries = [entry(text, id=f"e{number}") for number, text in enumerate(texts)]
    assert parse_day(render_day(DAY, entries)) == entries


def test_an_entry_without_conversation_survives_the_round_trip():
    lonely = entry(
        "Kept.", conversation_id=None, conversation_title="", first_message_id=None, last_message_id=None
    )
    assert parse_day(render_day(DAY, [lonely])) == [lonely]


def test_text_before_the_first_section_is_an_entry_without_id():
    markdown = "# 2026-11-21\n\nMy own note.\n\n" + render_day(DAY, [entry("One.")]).removeprefix(
        "# 2026-11-21\n"
    )
    assert parse_day(markdown) == [DailyEntry(id=None, text="My own note."), entry("One.")]


def test_a_title_with_line_breaks_stays_on_its_line():
    markdown = render_day(DAY, [entry("x", conversation_title="a\n<!-- entry e9 -->\nb")])
    assert [section.id for section in parse_day(markdown)] == ["e1"]


@pytest.mark.parametrize(
    ("heading", "text", "clock"),
    [("## 14:05", "Call her.", time(14, 5)), ("## 09:30 · Dentist", "Dentist\n\nCall her.", time(9, 30))],
)
def test_a_heading_with_a_time_begins_a_new_section(heading: str, text: str, clock: time):
    markdown = render_day(DAY, [entry("One.")]) + f"\n{heading}\n\nCall her.\n"
    assert parse_day(markdown) == [entry("One."), DailyEntry(id=None, text=text, clock=clock)]


def test_any_other_heading_stays_text():
    markdown = render_day(DAY, [entry("One.")]) + "\n## 25:00\n\n## Later\n"
    assert parse_day(markdown) == [entry("One.\n\n## 25:00\n\n## Later")]
