"""Relative dates in a question: "yesterday", "last week", "three days ago", "on Tuesday"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from memory.language.date_names import BEGINNING, WEEKDAYS, date_names, is_of_another_language
from memory.language.languages import UNSPACED_RUN
from memory.recall.date_spans import (
    FEW,
    DateSpan,
    calendar_span,
    last_weekend,
    latest_weekday,
    span_ago,
    span_since,
)

# A change between digits and letters ends a word, too: "10월", "4th". Vowel signs of Indian scripts do not.
TOKEN = re.compile(r"\d+|(?:[^\W\d_]|[\u0900-\u0963])+")
_WORD = re.compile(r"(?:[^\W\d_]|[\u0900-\u0963])+")
_AGO = re.compile(
    r"\b(\d{1,3}|a few|several|a couple of|a|an|one|two|three|four|five|six)\s+(day|week|month|year)s?\s+ago\b",
    re.IGNORECASE,
)
_LAST = re.compile(r"\b(last|this|past)\s+(week|month|year|" + "|".join(WEEKDAYS) + r")\b", re.IGNORECASE)
_NUMBERS = {
    **{"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6},
    **{"a couple of": 2, "a few": FEW, "several": FEW},
}
_FEW = re.compile(
    r"(?<!\w)(?:ein paar|einigen|een paar|paar|unos|unas|quelques|alcun[ei]|algun[ao]s|нескольк\w+|birkac|कुछ|بضعة|عدة)"
    r"(?!\w)|[几幾数](?=[天日个個週周ヶか年])|며칠(?=\s*전)"
)
"""Words for "a few"."""
_MOST_WORDS = 4
"""Most words of a name such as "day before yesterday"."""
_COUNT = re.compile(r"\d+(?:[.,]\d+)?")
_MOST_DIGITS = 3
_MOST_BESIDE = 20
"""Characters before and after a count that are searched for a unit and "ago". Searching all of the text around each
number would take quadratic time."""
_UNSURE = 0.6
"""The weight of a weekday without a word such as "last": "on Tuesday" may be any."""
_EVERY_BEFORE = re.compile(r"(?:每|毎週の?|매주\s*|\d)$")
"""Before a weekday these mean "every week", or "once a week" (一周一次)."""
_EVERY_BEHIND = ("마다",)
_EVERY_WORDS = "every each jede cada chaque ogni elke iedere каждый каждую каждое каждые her हर كل toda todo"
_EVERY = frozenset(_EVERY_WORDS.split())
_WEEKEND = re.compile(
    r"week[ -]end|wochenende\w?|fi[nm] de semana|fine settimana|hafta sonu|выходны[ех]|نهاية الأسبوع|सप्ताहांत|"
    r"[周週]末|주말"
)
_LAST_UNSPACED = ("上", "上个", "上個", "先", "지난", "저번")
_UNSPACED_UNIT = re.compile(
    r"(?:(?<![以晚早路网])(?P<last>上上?)|(?<![日基资資])(?P<now>[这這本]))[个個]?(?P<unit>[周週月]|星期|礼拜|禮拜)"
    r"|(?<![目以之从從])(?P<before>前)(?P<year>年)(?![龄齢纪])"
    r"|(?:(?P<korean>지난|저번)|(?P<this>이번))\s?(?P<its_unit>[주달해])(?=에|의|는|엔|부터|동안|\W|$)"
)
"""上周, 这个月, 前年, 지난 달. After other characters they are parts of other words: 目前月薪, 日本月刊."""
_UNITS_UNSPACED = {
    **dict.fromkeys(("周", "週", "星期", "礼拜", "禮拜", "주"), "week"),
    **dict.fromkeys(("月", "달"), "month"),
    **dict.fromkeys(("年", "해"), "year"),
}
_SEASONS = {
    3: "spring fruhling primavera printemps lente bahar весной весна весну الربيع वसंत wiosna wiosny 春 봄",
    6: "summer sommer verano ete estate verao zomer yaz летом лето الصيف गर्मियों lato lata 夏 여름",
    9: "autumn herbst otono automne autunno outono herfst sonbahar осенью осень الخريف jesien jesieni 秋 가을",
    12: "winter invierno hiver inverno kis зимой зима зиму الشتاء सर्दियों zima zimy 冬 겨울",
}
"""Seasons by their first month. They count only beside a year or a word for "last": "été" is also a verb."""
_SEASON_OF = {name: month for month, names in _SEASONS.items() for name in names.split()}
_LAST_YEAR = re.compile(r"(?:去年的?|去年の|昨年の|작년\s?|지난\s?)$")
_MORE_PAST = {
    **dict.fromkeys(
        ("きのう", "昨夜", "昨晚", "昨晩", "ゆうべ", "어젯밤", "امس", "البارحة", "last night"), (1, "day")
    ),
    **dict.fromkeys(("anoche", "gisteravond", "stanotte"), (1, "day")),
    **dict.fromkeys(
        ("おととい", "그저께", "그제", "엊그제", "أول أمس", "اول امس", "antes de ayer"), (2, "day")
    ),
    **dict.fromkeys(("onceki gun", "evvelsi gun"), (2, "day")),
    **dict.fromkeys(("大前天", "사흘 전"), (3, "day")),
    **dict.fromkeys(("열흘 전",), (10, "day")),
    "इस हफ्ते": (0, "week"),
    "इस महीने": (0, "month"),
}
_ONE_AGO = {
    "неделю назад": "week",
    "месяц назад": "month",
    "год назад": "year",
    "قبل أسبوع": "week",
    "일주일 전": "week",
}
"""Expressions that leave out the number one."""


def find_relative(folded: str, original: str, today: date) -> Iterator[DateSpan]:
    # Replace them by one word, because the week in "week-end" and in 周末 must not be read as one.
    folded = " ".join(_WEEKEND.sub(" weekend ", folded).split())
    lowered = original.lower()
    for match in _AGO.finditer(lowered):
        count = _NUMBERS[match[1]] if match[1] in _NUMBERS else int(match[1])
        yield span_ago(count, match[2], today)
    words = TOKEN.findall(folded)
    counted = _count_words(folded)
    several = dict.fromkeys(_last_several(TOKEN.findall(counted)))
    named = dict.fromkeys((*_past_names(folded, words), *_named_units(words)))
    # "The last two weeks" includes last week, so do not read that again.
    past = [one for one in named if one[1] not in {unit for _, unit in several}]
    weekdays = [*_weekdays(folded, words)]
    weeks = [count for count, unit in past if unit == "week"]
    for weekday, is_last in weekdays:
        yield from (_day_of_week(count, weekday, today) for count in weeks)
        if not weeks:
            yield latest_weekday(weekday, today, 1.0 if is_last else _UNSURE)
    for match in _LAST.finditer(lowered):
        # "Tuesday of last week" is one day, so the week itself is left out.
        if not (weekdays and match[2] == "week"):
            yield _named_span(match[1], match[2], today)
    for count, unit in past:
        if not (weekdays and unit == "week"):
            yield calendar_span(count, unit, today)
    yield from _seasons(folded, words, today)
    if _names_last_weekend(words):
        yield last_weekend(today)
    yield from (span_since(count, unit, today) for count, unit in several)
    # The library's names include English ones: do not read twice what was read above.
    if not _AGO.search(lowered):
        yield from _so_long_ago(counted, today)


def _count_words(folded: str) -> str:
    """Return the text with its number words as digits."""
    numbers = date_names().numbers
    return _WORD.sub(lambda word: numbers.get(word[0], word[0]), _FEW.sub(str(FEW), folded))


def _so_long_ago(counted: str, today: date) -> Iterator[DateSpan]:
    yield from (span_ago(1, unit, today) for name, unit in _ONE_AGO.items() if f" {name} " in f" {counted} ")
    for number in _COUNT.finditer(counted):
        if not number[0].isdecimal() or len(number[0]) > _MOST_DIGITS:
            continue
        start, end = number.span()
        # Include one more character, with which a word may continue.
        around = counted[max(0, start - _MOST_BESIDE - 1) : start], counted[end : end + _MOST_BESIDE + 1]
        if unit := _unit_ago(*around):
            yield span_ago(int(number[0]), unit, today)


def _unit_ago(said: str, rest: str) -> str:
    """Return the unit if the text around a count says that it is so long ago, else an empty string."""
    beginnings = [rest[:length] for length in range(min(len(rest), _MOST_BESIDE) + 1)]
    units = [
        (len(before) + len(behind), of_rest[behind])
        for before, of_rest in date_names().ago.items()
        if said.endswith(before)
        for behind in beginnings
        if behind in of_rest and _is_whole(said, before, behind, rest)
    ]
    return max(units, default=(0, ""))[1]


def _is_whole(said: str, before: str, behind: str, rest: str) -> bool:
    """Return whether the expression begins and ends with whole words; scripts without spaces need none."""
    if UNSPACED_RUN.search(behind):
        return True
    ends = (said[: len(said) - len(before)][-1:], rest[len(behind) :][:1])
    return not any(end.isalnum() or end == "_" for end in ends)


def _weekdays(folded: str, words: Sequence[str]) -> Iterator[tuple[int, bool]]:
    """Yield the named weekdays, each with whether the last one is meant. Weekdays of next week, and of every week, are
    no dates."""
    names = date_names()
    spaced = f" {' '.join(words)} "
    if any(f" {name} " in spaced or _holds_unspaced(folded, name) for name in names.coming):
        return
    for at in range(len(words)):
        name = next(
            (name for name in (" ".join(words[at : at + 2]), words[at]) if name in names.weekdays), ""
        )
        near = words[max(0, at - 2) : at + 4]
        around = {word[:BEGINNING] for word in near}
        is_last = not around.isdisjoint(names.last)
        is_other = not around.isdisjoint(names.next) or not _EVERY.isdisjoint(near)
        is_every = bool(name) and _EVERY_BEFORE.search(folded[: folded.find(name)]) is not None
        if name and not (is_other or is_every) and (is_last or name not in names.short_weekdays):
            yield names.weekdays[name], is_last or "지난" in near
    for name, weekday in names.weekdays.items():
        if UNSPACED_RUN.match(name) and name not in words:
            for match in re.finditer(re.escape(name), folded):
                is_every = folded[match.end() :].startswith(_EVERY_BEHIND)
                if not is_every and not _EVERY_BEFORE.search(folded[: match.start()]):
                    yield weekday, "지난" in words


def _holds_unspaced(folded: str, name: str) -> bool:
    return UNSPACED_RUN.match(name) is not None and name in folded


def _day_of_week(count: int, weekday: int, today: date) -> DateSpan:
    day = calendar_span(count, "week", today).first + timedelta(days=weekday)
    return DateSpan(day, day)


def _past_names(folded: str, words: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield (count, unit) of names such as "yesterday": as whole words, or anywhere in scripts without spaces."""
    past = {**date_names().past, **_MORE_PAST}
    at = 0
    while at < len(words):
        longest = next(
            (count for count in range(_MOST_WORDS, 0, -1) if " ".join(words[at : at + count]) in past), 0
        )
        if longest > 1 or (longest and not is_of_another_language(words[at], words)):
            yield past[" ".join(words[at : at + longest])]
        at += longest or 1
    # `_named_units` reads these expressions; here they would count again.
    rest = _UNSPACED_UNIT.sub(" ", folded)
    unspaced = [name for name in past if _holds_unspaced(rest, name)]
    # A shorter name may be part of a longer one, e.g. 前天 of 大前天.
    longest_only = [
        name for name in unspaced if not any(name in other and name != other for other in unspaced)
    ]
    yield from (past[name] for name in longest_only if name not in words)


def _named_units(words: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield (count, unit) of units with a word beside them that says which: "vergangene Woche", "这个月"."""
    for at, word in enumerate(words):
        # The Arabic article is written as part of its word.
        for unit, last in date_names().units.get(word.removeprefix("ال"), ()):
            beside = {word[:BEGINNING] for word in (*words[max(0, at - 1) : at], *words[at + 1 : at + 2])}
            if unit != "day" and not beside.isdisjoint(last):
                yield 1, unit
    for match in _UNSPACED_UNIT.finditer(" ".join(words)):
        unit = match["unit"] or match["year"] or match["its_unit"]
        is_two = match["before"] or match["last"] == "上上"
        yield 0 if match["now"] or match["this"] else 2 if is_two else 1, _UNITS_UNSPACED[unit]


def _last_several(words: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield (count, unit) of spans up to today: "the last two weeks", "les trois derniers mois"."""
    for at, word in enumerate(words):
        before = words[max(0, at - 2) : at]
        counts = [int(word) for word in before if word.isdecimal() and len(word) <= _MOST_DIGITS]
        for unit, last in date_names().units.get(word, ()):
            if counts and any(word[:BEGINNING] in last for word in before):
                yield counts[0], unit


def _seasons(folded: str, words: Sequence[str], today: date) -> Iterator[DateSpan]:
    last = date_names().last | {"last", "past", "الما"}
    years = [int(word) for word in words if len(word) == 4 and word.isdecimal()]
    for at, word in enumerate(words):
        near = {one[:BEGINNING] for one in words[max(0, at - 2) : at + 3]}
        if word in _SEASON_OF and (years or not near.isdisjoint(last)):
            yield _season(_SEASON_OF[word], years, today)
    for name, month in _SEASON_OF.items():
        at = folded.find(name) if UNSPACED_RUN.match(name) else -1
        if at > 0 and (years or _LAST_YEAR.search(folded[:at])):
            yield _season(month, years or [today.year - 1], today)


def _season(month: int, years: Sequence[int], today: date) -> DateSpan:
    """Return the three months from `month` on, of the named year or else the latest that are over."""
    year = years[0] if years else today.year
    while not years and date(year, month, 1) + timedelta(days=89) >= today:
        year -= 1
    # Any four digits may be read as a year, so keep it inside the calendar.
    first = date(max(2, min(year, 9000)), month, 1)
    return DateSpan(first, first + timedelta(days=91))


def _names_last_weekend(words: Sequence[str]) -> bool:
    last = date_names().last
    return any(
        word == "weekend"
        and any(one[:BEGINNING] in last or one in _LAST_UNSPACED for one in words[max(0, at - 2) : at + 2])
        for at, word in enumerate(words)
    )


def _named_span(which: str, unit: str, today: date) -> DateSpan:
    if unit in WEEKDAYS:
        return latest_weekday(WEEKDAYS.index(unit), today, 1.0)
    return span_since(1, unit, today) if which in ("this", "past") else calendar_span(1, unit, today)
