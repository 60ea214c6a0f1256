"""Weekdays, seasons, and numbers of days ago in questions in several languages."""

from __future__ import annotations

from datetime import date

import pytest

from memory.recall.dates import find_dates

SUNDAY = date(2026, 11, 22)
TUESDAY = date(2026, 11, 17)
WEEK_BEFORE = date(2026, 11, 10)
THREE_DAYS_AGO = date(2026, 11, 19)

LAST = [
    "What did I say last Tuesday?",
    "Was habe ich letzten Dienstag gesagt?",
    "¿Qué dije el martes pasado?",
    "Qu'ai-je dit mardi dernier ?",
    "Che cosa ho detto martedì scorso?",
    "O que eu disse na terça passada?",
    "O que eu disse na terça-feira passada?",
    "Geçen salı ne dedim?",
    "Что я сказал в прошлый вторник?",
    "ماذا قلت يوم الثلاثاء الماضي؟",
    "मैंने पिछले मंगलवार क्या कहा?",
]
UNSURE = [
    "What did I say on Tuesday?",
    "Was habe ich am Dienstag gesagt?",
    "Wat zei ik dinsdag?",
    "Что я сказал во вторник?",
    "周二我说了什么？",
    "火曜日に何を話した？",
    "화요일에 뭐라고 했지?",
]
OF_LAST_WEEK = [
    "What did I say on Tuesday last week?",
    "Was war letzte Woche Dienstag?",
    "上周二我说了什么？",
    "上个星期二我说了什么？",
    "先週の火曜日に何を話した？",
    "지난주 화요일에 뭐라고 했지?",
]
AGO = [
    "What did I say three days ago?",
    "Was habe ich vor drei Tagen gesagt?",
    "¿Qué dije hace tres días?",
    "Qu'ai-je dit il y a trois jours ?",
    "Che cosa ho detto tre giorni fa?",
    "O que eu disse há três dias?",
    "Wat zei ik drie dagen geleden?",
    "Üç gün önce ne dedim?",
    "Что я сказал три дня назад?",
    "ماذا قلت قبل ثلاثة أيام؟",
    "मैंने तीन दिन पहले क्या कहा?",
    "三天前我说了什么？",
    "三日前に何を話した？",
    "3일 전에 뭐라고 했지?",
]
NO_DATE = [
    "What shall I do next Tuesday?",
    "Was mache ich nächsten Dienstag?",
    "下周二我做什么？",
    "来週の火曜日は何をする？",
    "What do I do on Tuesdays?",
    "我每周二做什么？",
    "一周一次够吗？",
    "Where did I see Mona and her second car?",
    "Onde fica a segunda loja?",
    "Что было 2.5 недели назад?",
    "2.5ヶ月前に何を話した？",
]


def days(question: str) -> set[tuple[date, date, float]]:
    return {(span.first, span.last, span.weight) for span in find_dates(question, SUNDAY).spans}


@pytest.mark.parametrize("question", LAST)
def test_the_last_weekday_is_the_latest_one_before_today(question: str) -> None:
    assert days(question) == {(TUESDAY, TUESDAY, 1.0)}


@pytest.mark.parametrize("question", UNSURE)
def test_a_weekday_alone_has_a_lower_weight(question: str) -> None:
    [(first, last, weight)] = days(question)
    assert first == last == TUESDAY
    assert weight < 1


@pytest.mark.parametrize("question", OF_LAST_WEEK)
def test_a_weekday_of_last_week_is_a_day_of_that_week(question: str) -> None:
    assert days(question) == {(WEEK_BEFORE, WEEK_BEFORE, 1.0)}


@pytest.mark.parametrize("question", AGO)
def test_a_number_of_days_ago_is_found(question: str) -> None:
    assert days(question) == {(THREE_DAYS_AGO, THREE_DAYS_AGO, 1.0)}


@pytest.mark.parametrize("question", NO_DATE)
def test_future_or_weekly_weekdays_and_decimal_counts_are_no_dates(question: str) -> None:
    assert not find_dates(question, SUNDAY)


def test_inflected_forms_of_a_number_are_found() -> None:
    assert days("Что было две недели назад?") == days("What was two weeks ago?")


@pytest.mark.parametrize(
    "question",
    [
        "What did we say last summer?",
        "el verano pasado",
        "l'été dernier",
        "прошлым летом",
        "geçen yaz",
        "الصيف الماضي",
    ],
)
def test_the_last_summer_is_three_months(question: str):
    [span] = find_dates(question, date(2026, 11, 23)).spans
    assert (span.first, span.last) == (date(2026, 6, 1), date(2026, 8, 31))


@pytest.mark.parametrize("question", ["Il a été malade.", "hot spring", "yaz bana"])
def test_a_season_without_a_year_or_last_is_no_date(question: str):
    assert not find_dates(question, date(2026, 11, 23))
