"""Recall in the languages of `tests/benchmarks/recall_probes.json`: which turns are recalled and which are not."""

from datetime import UTC, datetime, timedelta

import pytest

from benchmarks.recall_data import OWN_PROBES, History, read_probes, read_unrelated
from chatapp.accounts.models import User
from chatapp.conversations.actions.imports import import_conversation
from chatapp.conversations.api.imports import read_messages
from chatapp.recall.actions.indexing import index_conversation
from chatapp.recall.turn_recall import RecalledTurn, recall_for
from memory.recall.ranking import LITTLE, RecallSize
from tests.memory_store.rows import new_conversation, say

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
PROBES = {history.language: history for history in read_probes(OWN_PROBES)}
UNRELATED = read_unrelated()
ROOM = RecallSize(1_200, 4_800)
LEAST_FOUND = 9
"""Of ten questions. Words alone cannot find the answer to a question in words that nobody said."""

every_language = pytest.mark.parametrize("language", PROBES)


def recalled(user: User, question: str, room: RecallSize = ROOM) -> list[RecalledTurn]:
    return recall_for(user_id=user.pk, question=question, now=NOW, room=room)


def take_in(user: User, history: History) -> None:
    imported = import_conversation(user=user, messages=read_messages(history.messages, NOW), now=NOW)
    index_conversation(imported.pk)


def say_at(user: User, at: datetime, *texts: str) -> None:
    conversation = new_conversation(user)
    say(conversation, *texts, at=at)
    index_conversation(conversation.pk)


@pytest.mark.mechanism("ours.recall")
@every_language
def test_turns_of_both_speakers_are_found_in_every_language(alice: User, language: str):
    take_in(alice, PROBES[language])
    found = {
        asked.question: asked.share_in([turn.text for turn in recalled(alice, asked.question)])
        for asked in PROBES[language].questions
    }
    assert sum(found.values()) >= LEAST_FOUND, found


@pytest.mark.mechanism("ours.recall-gate")
@every_language
def test_an_unrelated_question_recalls_little(alice: User, language: str):
    take_in(alice, PROBES[language])
    for question in UNRELATED[language].foreign:
        assert sum(turn.tokens for turn in recalled(alice, question)) <= LITTLE.tokens, question


@pytest.mark.mechanism("ours.recall-gate")
@every_language
def test_small_talk_and_commands_recall_nothing(alice: User, language: str):
    take_in(alice, PROBES[language])
    assert [text for text in UNRELATED[language].small if recalled(alice, text)] == []


@pytest.mark.mechanism("ours.recall-gate")
@pytest.mark.parametrize(
    ("remark", "said", "question"),
    [
        ("sounds good to me", "The violin sounds good in hall {}.", "What sounds good?"),
        ("klingt gut", "Die Geige klingt gut in Saal {}.", "Was klingt gut?"),
        ("听起来不错", "小提琴在第{}个大厅听起来不错。", "小提琴听起来不错吗？"),
    ],
)
def test_a_general_remark_recalls_little_even_if_the_history_contains_its_words(
    alice: User, remark: str, said: str, question: str
):
    say_at(alice, NOW - timedelta(days=4), *(f"Tram {number} came by." for number in range(300)))
    say_at(alice, NOW - timedelta(days=3), *(said.format(number) for number in range(40)))
    assert 0 < sum(turn.tokens for turn in recalled(alice, remark)) <= LITTLE.tokens
    assert sum(turn.tokens for turn in recalled(alice, question)) > LITTLE.tokens


@pytest.mark.parametrize(
    "question",
    [
        "What did we talk about on September 1st?",
        "Worüber haben wir am 1. September gesprochen?",
        "¿De qué hablamos el 1 de septiembre?",
        "9月1日我们聊了什么？",
        "9월 1일에 무슨 이야기를 했지?",
        "О чём мы говорили 1 сентября?",
    ],
)
def test_a_day_is_recalled_in_full_and_in_order(alice: User, question: str):
    say_at(alice, NOW - timedelta(days=3), *(f"We talk about number {number}." for number in range(30)))
    day = [f"Line {number} of the day." for number in range(12)]
    say_at(alice, datetime(2025, 9, 1, 9, tzinfo=UTC), *day)
    texts = [turn.text.partition(": ")[2] for turn in recalled(alice, question, RecallSize(400, 1_600))]
    assert [text for text in texts if text in day] == day


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What was our first conversation about?", "I keep bees."),
        ("我们第一次聊天说了什么？", "I keep bees."),
        ("Worum ging es in unserem ersten Gespräch?", "I keep bees."),
        ("What did we talk about last time?", "The tram was late."),
        ("¿De qué hablamos la última vez?", "The tram was late."),
    ],
)
def test_the_first_and_the_last_conversation_are_recalled(alice: User, question: str, expected: str):
    for days, text in ((90, "I keep bees."), (60, "The roof leaks."), (30, "The tram was late.")):
        say_at(alice, NOW - timedelta(days=days), text, "I see.")
    scores = {turn.text.partition(": ")[2]: turn.score for turn in recalled(alice, question)}
    assert max(scores, key=lambda text: scores[text]) in (expected, "I see.")
    assert expected in scores


@pytest.mark.parametrize(
    ("question", "texts", "expected"),
    [
        (
            "What is the third plan?",
            [f"Plan {number}: climb hill {number + 5}." for number in range(1, 6)],
            2,
        ),
        (
            "Quel était le troisième plan ?",
            [f"Plan {number} : la tour {number + 5}." for number in range(1, 6)],
            2,
        ),
        ("Was war der dritte Plan?", [f"Plan {number}: zum Turm {number + 5}." for number in range(1, 6)], 2),
        ("ما الذي يلزم السفر؟", ["زرعت شجرة تفاح.", "أحتاج تأشيرة لسفر طويل."], 1),
        ("أين تقع المدرسة؟", ["الحديقة والمدرسة قريبتان من بيتي.", "زرعت شجرة تفاح."], 0),
    ],
)
def test_ordinals_and_prefixed_words_are_found(alice: User, question: str, texts: list[str], expected: int):
    for days, text in enumerate(texts, 10):
        say_at(alice, NOW - timedelta(days=days), text)
    say_at(alice, NOW - timedelta(days=3), *(f"Tram {number} came by." for number in range(60, 90)))
    best = max(recalled(alice, question), key=lambda turn: turn.score)
    assert best.text.partition(": ")[2] == texts[expected]


@pytest.mark.parametrize(
    ("question", "naming"),
    [
        ("What was our first conversation about?", "There are two messages of this conversation."),
        ("Worum ging es in unserem ersten Gespräch?", "Dieses Gespräch hat zwei Nachrichten."),
        ("我们第一次聊天说了什么？", "这次聊天有两条消息。"),
    ],
)
def test_the_word_conversation_in_a_question_is_not_a_search_term(alice: User, question: str, naming: str):
    say_at(alice, NOW - timedelta(days=90), "I keep bees.", "Good.")
    say_at(alice, NOW - timedelta(days=30), "The museum has a new hall.", naming)
    assert "I keep bees." in [turn.text.partition(": ")[2] for turn in recalled(alice, question)]
