"""Memory learns sentences worth remembering, once, and no forgotten ones."""

from __future__ import annotations

import pytest

from memory.language.sentences import Vocabulary
from memory.language.terms import Analyzer
from memory.long_term.memorable import is_memorable
from memory.long_term.new_sentences import KnownSentences, Learned, learn
from memory.long_term.tombstones import Fingerprint, Fingerprinter, Tombstones
from memory.tokens import text_message

VOCABULARY = Vocabulary(Analyzer())
FINGERPRINTER = Fingerprinter(b"key", VOCABULARY)


@pytest.mark.parametrize(
    "sentence",
    [
        "My sister Clara lives in Oslo.",
        "I'm allergic to peanuts.",
        "I work at Initech as a welder.",
        "We moved to Lyon last spring.",
        "The Wi-Fi password is hunter2-blue.",
        "Please remember that the gate closes at nine.",
        "Clara is getting married in Bergen.",
        "Meine Katze heißt Minka.",
        "J'habite à Montréal.",
        "Vivo en Sevilla desde abril.",
        "我喜欢乌龙茶和旧书店",
        "パクチーが嫌いです。",
        "你好，我叫王小明。",
        "Our budget is 40,000 euros.",
    ],
)
def test_statements_of_users_are_worth_remembering(sentence: str):
    assert is_memorable(sentence, "user", VOCABULARY)


@pytest.mark.parametrize(
    "sentence",
    [
        "How are you?",
        "Thanks a lot!",
        "Good morning!",
        "Haha, that is funny.",
        "See you on Monday!",
        "I like the weather today.",
        "What is my sister's name?",
        "That sounds great, tell me more.",
        "It is raining again.",
        "I am fine, thanks.",
        "I did not know that.",
        "你好，王小明！",
        "王老师，早上好！",
        "",
    ],
)
def test_small_talk_is_not_worth_remembering(sentence: str):
    assert not is_memorable(sentence, "user", VOCABULARY)


def test_only_identifiers_of_assistant_messages_are_worth_remembering():
    assert is_memorable("Your ticket is INV-2041.", "assistant", VOCABULARY)
    assert not is_memorable("I would like to hear more of Lyon.", "assistant", VOCABULARY)


def known(*texts: str) -> KnownSentences:
    return KnownSentences(VOCABULARY, [(f"entry {number}", text) for number, text in enumerate(texts)])


@pytest.mark.parametrize(
    "sentence", ["My dog is called Rex.", "- the user's dog is called Rex", "The dog is Rex."]
)
def test_a_sentence_that_repeats_memory_is_found(sentence: str):
    assert known("We garden.", "My dog is called Rex, he is five.").find(sentence) == "entry 1"


@pytest.mark.parametrize(
    "sentence",
    [
        "My dog is called Bello.",
        "My dog is called Rex and eats at 18:30.",
        "My favourite colour is green.",
        "My cat is called Tom.",
    ],
)
def test_a_similar_sentence_with_another_fact_is_new(sentence: str):
    assert known("My dog is called Rex.", "My favourite colour is blue.").find(sentence) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("我现在住在北京的一个小公寓里和我的猫一起生活。", "我现在住在上海的一个小公寓里和我的猫一起生活。"),
        (
            "私は大阪の小さなアパートに猫と一緒に住んでいます。",
            "私は東京の小さなアパートに猫と一緒に住んでいます。",
        ),
        (
            "저는 서울의 작은 아파트에서 고양이와 함께 살고 있어요.",
            "저는 부산의 작은 아파트에서 고양이와 함께 살고 있어요.",
        ),
        (
            "أعيش الآن في القاهرة مع زوجتي وأولادي الثلاثة في شقة",
            "أعيش الآن في الرباط مع زوجتي وأولادي الثلاثة في شقة",
        ),
        (
            "मैं अपनी पत्नी और बच्चों के साथ दिल्ली में रहता हूँ।",
            "मैं अपनी पत्नी और बच्चों के साथ मुंबई में रहता हूँ।",
        ),
        ("我们每周三晚上在社区中心上陶艺课", "我们每周五晚上在社区中心上陶艺课"),
        (
            "I take the blue pills every morning before breakfast.",
            "I don't take the blue pills every morning before breakfast.",
        ),
        (
            "Meine Tochter verträgt Erdnüsse, Milch und Weizen.",
            "Meine Tochter verträgt keine Erdnüsse, Milch und Weizen.",
        ),
        ("Я ем орехи, молоко и пшеницу по утрам.", "Я не ем орехи, молоко и пшеницу по утрам."),
        ("我的女儿早上可以吃花生和牛奶", "我的女儿早上不可以吃花生和牛奶"),
        ("可以吃花生和牛奶", "不可以吃花生和牛奶"),
        ("The user's daughter can eat nuts.", "My daughter can't eat nuts."),
        ("딸은 땅콩을 먹어요.", "딸은 땅콩을 안 먹어요."),
        ("Kahvaltıdan önce her sabah mavi hapı içiyorum.", "Kahvaltıdan önce her sabah mavi hapı içmiyorum."),
    ],
)
def test_a_changed_word_or_a_negation_is_new_in_every_language(before: str, after: str):
    for one, other in ((before, after), (after, before)):
        assert known(one).find(one) == "entry 0"
        assert known(one).find(other) is None


def learned(summary: str, *said: str, memory: KnownSentences | None = None, gone: str = "") -> Learned:
    messages = [text_message("user", text) for text in said]
    tombstones = Tombstones(FINGERPRINTER.fingerprints([gone]), FINGERPRINTER)
    return learn(summary, messages, known=memory or known(), tombstones=tombstones, vocabulary=VOCABULARY)


def test_an_entry_is_the_new_part_of_the_summary_and_the_statements_it_lacks():
    found = learned(
        "The user gardens in Oslo. Their dog is called Rex.",
        "Hi! My dog is called Rex.",
        "My plum tree is 12 years old.",
        "Thanks!",
    )
    assert found.text == (
        "The user gardens in Oslo. Their dog is called Rex.\n\n- My plum tree is 12 years old."
    )


def test_a_repetition_refers_to_the_entry_that_it_repeats():
    found = learned("Their dog is called Rex.", memory=known("- My dog is called Rex."))
    assert found == Learned("", ("entry 0",))


def test_no_entry_is_learned_from_small_talk():
    assert learned("", "Hi!", "How are you?", "Lovely weather today.").text == ""


def test_a_forgotten_sentence_is_not_learned_again():
    said = "My dog is called Rex."
    found = learned(f"{said} The plum tree blooms.", said, gone=said)
    assert found.text == "The plum tree blooms."


@pytest.mark.parametrize(
    ("said", "denied"),
    [
        ("The user's daughter can eat nuts.", "My daughter can't eat nuts."),
        ("The user's daughter can eat nuts.", "My daughter can’t eat nuts."),
        ("My daughter can eat nuts.", "My daughter cannot eat nuts."),
        ("딸은 땅콩을 먹어요.", "딸은 땅콩을 안 먹어요."),
    ],
)
def test_forgetting_a_statement_does_not_cover_its_negation(said: str, denied: str):
    for one, other in ((said, denied), (denied, said)):
        tombstones = Tombstones(FINGERPRINTER.fingerprints([one]), FINGERPRINTER)
        assert tombstones.cover(one)
        assert not tombstones.cover(other)


def test_an_old_tombstone_without_the_negation_still_covers_its_sentence():
    denied = "My daughter can't eat nuts."
    [made_now] = FINGERPRINTER.fingerprints([denied])
    [without_denial] = FINGERPRINTER.fingerprints(["My daughter can eat nuts."])
    stored = Fingerprint(made_now.whole, without_denial.words)
    assert Tombstones([stored], FINGERPRINTER).cover(denied)
