"""Dates as people write them in fourteen languages: absolute, relative, months, spans, and texts without dates."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

import pytest

from memory.recall.dates import find_dates

MONDAY = date(2026, 11, 23)

DAYS = {
    date(2026, 5, 2): [
        "What did we say on May 2?",
        "Was sagte ich am 2. Mai?",
        "¿Qué dije el 2 de mayo?",
        "Qu'ai-je dit le 2 mai ?",
        "Cosa ho detto il 2 maggio?",
        "O que eu disse em 2 de maio?",
        "Wat zei ik op 2 mei?",
        "Что я говорил 2 мая?",
        "2 Mayıs'ta ne dedim?",
        "2 मई को मैंने क्या कहा?",
        "ماذا قلت في 2 مايو؟",
        "ماذا قلت يوم ٢ أيار؟",
        "ماذا قلت في 2 ماي؟",
        "5月2日に何を話しましたか",
        "5월 2일에 뭐라고 했지?",
        "5月2号我们说了什么",
        "What did I say on the second of May?",
        "Which report is due May 2?",
        "Was sagte ich am zweiten Mai?",
        "¿Qué dije el dos de mayo?",
        "Qu'ai-je dit le deux mai ?",
        "Cosa ho detto il due maggio?",
        "O que eu disse em dois de maio?",
        "Что я говорил второго мая?",
        "오월 이일에 뭐라고 했지?",
    ],
    date(2026, 5, 1): [
        "el primero de mayo",
        "il primo maggio",
        "primeiro de maio",
        "le premier mai",
        "am ersten Mai",
    ],
    date(2026, 10, 11): ["시월 십일일에 뭘 샀지?"],
    date(2025, 10, 3): [
        "What did I tell you on 10/3/2025?",
        "¿Qué te dije el 3/10/2025?",
        "Wat zei ik tegen je op 3-10-2025?",
        "2025/10/03に何を話しましたか",
        "二零二五年十月三日我说了什么",
    ],
    date(2026, 10, 3): ["ماذا اشتريت في 3 تشرين الأول؟"],
    date(2026, 11, 22): [
        "What did I eat last night?",
        "¿Qué comí anoche?",
        "Wat at ik gisteravond?",
        "昨夜何を食べた？",
        "昨晚我吃了什么？",
        "어젯밤에 뭘 먹었지?",
        "ماذا أكلت البارحة؟",
    ],
    date(2026, 11, 21): ["antes de ayer", "önceki gün", "أول أمس", "엊그제", "おととい"],
    date(2026, 11, 13): ["10 дней назад", "열흘 전", "십 일 전", "十天前", "10 days ago"],
    date(2026, 11, 20): ["três dias atrás", "منذ ثلاثة أيام", "사흘 전", "大前天"],
}
LAST_WEEK = (date(2026, 11, 16), date(2026, 11, 22))
LAST_MONTH = (date(2026, 10, 1), date(2026, 10, 31))
LAST_YEAR = (date(2025, 1, 1), date(2025, 12, 31))
SPANS = {
    LAST_WEEK: ["in der vergangenen Woche", "la scorsa settimana", "पिछले हफ्ते", "지난 주에", "上個禮拜"],
    LAST_MONTH: ["पिछले महीने", "지난 달", "上个月"],
    LAST_YEAR: ["l'an dernier", "geçen sene", "العام الماضي", "지난해"],
    (date(2024, 1, 1), date(2024, 12, 31)): ["前年我去了哪里？"],
    (date(2026, 11, 23), date(2026, 11, 29)): ["这周", "这个星期", "이번 주", "इस हफ्ते"],
    (date(2026, 11, 1), date(2026, 11, 30)): ["这个月", "इस महीने", "questo mese"],
    (date(2026, 11, 21), date(2026, 11, 22)): [
        "What did I do last weekend?",
        "Was war am letzten Wochenende?",
        "el fin de semana pasado",
        "le week-end dernier",
        "lo scorso fine settimana",
        "no fim de semana passado",
        "vorig weekend",
        "в прошлые выходные",
        "geçen hafta sonu",
        "نهاية الأسبوع الماضي",
        "先週末",
        "지난 주말",
        "上周末",
    ],
    (date(2026, 11, 9), date(2026, 11, 23)): [
        "the last two weeks",
        "die letzten zwei Wochen",
        "les deux dernières semaines",
    ],
    (date(2026, 11, 17), date(2026, 11, 21)): [
        "a few days ago",
        "vor ein paar Tagen",
        "il y a quelques jours",
        "几天前",
    ],
}
FROM_3_TO_5_OCTOBER = [
    "between October 3 and October 5",
    "from October 3 to 5",
    "vom 3. bis 5. Oktober",
    "del 3 al 5 de octubre",
    "entre le 3 et le 5 octobre",
    "dal 3 al 5 ottobre",
    "de 3 a 5 de outubro",
    "van 3 tot 5 oktober",
    "с 3 по 5 октября",
    "3 Ekim'den 5 Ekim'e kadar",
    "3 से 5 अक्टूबर तक",
    "من 3 إلى 5 أكتوبر",
    "10月3日から5日まで",
    "10월 3일부터 5일까지",
    "10月3号至10月5号",
]
FROM_MARCH_TO_MAY = [
    "What happened from March to May?",
    "von März bis Mai",
    "de marzo a mayo",
    "de mars à mai",
    "van maart tot mei",
    "с марта по май",
    "मार्च से मई तक",
    "من مارس إلى مايو",
    "3月から5月",
    "三月到五月",
]
OCTOBER = [
    "my second October in Rome",
    "в октябре",
    "ekimde ne yaptım?",
    "im Oktober",
    "10월에",
    "en octubre",
]
NO_DATE = [
    "이월 상품이 뭐야?",
    "사월이 누구야?",
    "이 일 전에 뭘 했지?",
    "mar eat 3",
    "la mar",
    "What do I do every Tuesday?",
    "매주 월요일에 뭘 하지?",
    "목요일마다 뭘 하지?",
    "Che cosa faccio ogni martedì?",
    "我目前月薪多少？",
    "以上年龄",
    "The ratio is 10/12 of it",
    "Welche Versicherungsnummer steht hier bei der Allianz?",
    "Wat staat hier over de verzekering?",
    "Which bug did Python 3.11.4 have?",
    "Which bug did Python 3.11.14 have?",
    "We use Postgres 16.2.",
    "Wir nutzen Postgres 16.2.",
    "The rate is 12.5.",
    "Was ist neu in Ubuntu 24.04.?",
    "Ping 10.1.2.3",
    "see section 4.2.1",
    "What did Marco say about the budget?",
    "Where does Julio live?",
    "¿Dónde vive Julio?",
    "Tell me about Mars",
    "¿Qué marca de coche compré?",
    "Do I like mayo on my fries?",
]
LAST_DECEMBER = [
    "What did I do last December?",
    "What did I do in December last year?",
    "Was habe ich letzten Dezember gemacht?",
    "¿Qué hice el pasado diciembre?",
    "Qu'ai-je fait en décembre dernier ?",
    "去年12月我做了什么？",
    "昨年の12月に何をした？",
    "작년 12월에 뭐 했지?",
]
MAY_3_LAST_YEAR = [
    "What did I do on May 3 last year?",
    "Was habe ich am 3. Mai letzten Jahres gemacht?",
    "¿Qué hice el 3 de mayo del año pasado?",
    "Qu'ai-je fait le 3 mai de l'année dernière ?",
    "去年5月3号我做了什么？",
    "昨年5月3日に何をした？",
    "작년 5월 3일에 뭐 했지?",
    "ماذا فعلت في 3 مايو العام الماضي؟",
    "पिछले साल 3 मई को मैंने क्या किया?",
]
THAI = {
    "เมื่อวานฉันกินอะไร": (date(2026, 11, 22), date(2026, 11, 22)),
    "3 วันก่อนฉันพูดอะไร": (date(2026, 11, 20), date(2026, 11, 20)),
    "สัปดาห์ที่แล้วฉันทำอะไร": (date(2026, 11, 16), date(2026, 11, 22)),
    "เดือนที่แล้วฉันทำอะไร": (date(2026, 10, 1), date(2026, 10, 31)),
}


def exact(question: str, has_said: Collection[date] = ()) -> list[tuple[date, date]]:
    spans = find_dates(question, MONDAY).resolve(has_said)
    return [(span.first, span.last) for span in spans if span.weight == 1.0]


@pytest.mark.parametrize(("day", "question"), [(day, one) for day, many in DAYS.items() for one in many])
def test_a_day_is_found(day: date, question: str) -> None:
    assert exact(question) == [(day, day)]


@pytest.mark.parametrize(("span", "question"), [(span, one) for span, many in SPANS.items() for one in many])
def test_a_span_relative_to_today_is_found(span: tuple[date, date], question: str) -> None:
    assert exact(question) == [span]


@pytest.mark.parametrize("question", FROM_3_TO_5_OCTOBER)
def test_a_range_of_days_is_one_span(question: str) -> None:
    assert exact(question) == [(date(2026, 10, 3), date(2026, 10, 5))]


@pytest.mark.parametrize("question", FROM_MARCH_TO_MAY)
def test_a_range_of_months_is_one_span(question: str) -> None:
    assert exact(question)[0] == (date(2026, 3, 1), date(2026, 5, 31))


@pytest.mark.parametrize("question", OCTOBER)
def test_a_month_alone_is_found_in_inflected_forms(question: str) -> None:
    assert exact(question)[0] == (date(2026, 10, 1), date(2026, 10, 31))


@pytest.mark.parametrize("question", NO_DATE)
def test_texts_that_resemble_dates_are_not_dates(question: str) -> None:
    assert not find_dates(question, MONDAY)


@pytest.mark.parametrize("question", LAST_DECEMBER)
def test_last_december_is_the_latest_december_that_is_over(question: str) -> None:
    assert exact(question) == [(date(2025, 12, 1), date(2025, 12, 31))]


@pytest.mark.parametrize("question", MAY_3_LAST_YEAR)
def test_the_year_of_a_day_may_be_relative_to_today(question: str) -> None:
    assert exact(question, {date(2025, 5, 3), date(2026, 5, 3)}) == [(date(2025, 5, 3), date(2025, 5, 3))]


@pytest.mark.parametrize("question", THAI)
def test_relative_dates_are_found_in_thai(question: str) -> None:
    assert exact(question) == [THAI[question]]


def test_a_month_in_the_future_means_that_of_last_year() -> None:
    assert exact("What did I say in December?")[0] == (date(2025, 12, 1), date(2025, 12, 31))


@pytest.mark.parametrize(
    "question",
    ["Was war am 3.11.?", "Wir waren vom 3.11. bis gestern in Bonn.", "3.11. Bonn", "Rechnung 03.11.26"],
)
def test_day_and_month_with_dots_are_a_date_unless_they_are_a_number(question: str) -> None:
    assert (date(2026, 11, 3), date(2026, 11, 3)) in exact(question)


@pytest.mark.parametrize("question", ["Qu'est-ce que j'ai mangé hier ?", "hier soir"])
def test_a_date_name_that_is_a_word_in_another_language_is_found(question: str) -> None:
    assert exact(question) == [(date(2026, 11, 22), date(2026, 11, 22))]


@pytest.mark.parametrize(
    "question",
    ["¿Qué hicimos en julio?", "O que fizemos em março?", "Co robiłem w marcu?", "Was war im Juli?"],
)
def test_a_month_without_a_year_is_found_in_its_language(question: str) -> None:
    assert exact(question)


def test_days_without_a_year_are_in_the_year_with_messages() -> None:
    assert exact("del 3 al 5 de octubre", {date(2024, 10, 4)}) == [(date(2024, 10, 3), date(2024, 10, 5))]


def test_an_ambiguous_numeric_date_means_the_day_with_messages() -> None:
    assert exact("What was on 3/10/2025?", {date(2025, 10, 3)}) == [(date(2025, 10, 3), date(2025, 10, 3))]
    assert exact("What was on 3/10/2025?") == [(date(2025, 3, 10), date(2025, 3, 10))]
