"""What came from a forgotten text is found again; what did not is left alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.quotes import Quotes
from memory.sentences import Vocabulary, split_sentences
from memory.terms import Analyzer
from memory.tombstones import Fingerprinter, Tombstones

VOCABULARY = Vocabulary(Analyzer())
SAID = "My dog is called Rex. He eats two bowls of Pedigree-7 at 18:30."


def quotes(*texts: str) -> Quotes:
    return Quotes(texts, VOCABULARY)


@given(st.text(alphabet="ab .!?\n。-", max_size=80))
def test_the_sentences_of_a_text_joined_are_the_text(text: str):
    assert "".join(split_sentences(text)) == text


@pytest.mark.parametrize(
    "text",
    ["My dog is called Rex.", "As I said: my DOG  is called rex!", "Feed Pedigree-7 in the evening."],
)
def test_a_whole_sentence_or_an_identifier_repeats_it(text: str):
    assert quotes(SAID).are_in(text)
    assert quotes(SAID).take_out(f"{text} The plum tree blooms.") == "The plum tree blooms."


@pytest.mark.parametrize(
    "text",
    ["The user has a dog, Rex.", "We meet at 19:00.", "Thanks!", "", "My dog barks.", "Buy Pedigree-77."],
)
def test_words_alone_repeat_nothing(text: str):
    assert not quotes(SAID).are_in(text)
    assert quotes(SAID).take_out(text) == text


def test_of_answers_only_sentences_with_facts_count():
    polite = "Let me know if there is anything else I can help with."
    answered = Quotes((), VOCABULARY, answered=[f"The code is INV-2041. {polite}"])
    assert answered.are_in("They said the code is INV-2041.")
    assert not answered.are_in(polite)


@given(
    st.lists(
        st.sampled_from(["Rex", "dog", "Pedigree-7", "18:30", "bowls", "犬", "code", "4711"]), min_size=2
    )
)
def test_what_repeats_a_quote_has_all_words_of_it(words: list[str]):
    """The index is asked for texts with all of these words."""
    text = " ".join(words)
    for words_of in quotes(text).word_sets():
        assert words_of <= VOCABULARY.words(f"Before it. {text}. Behind it.")


def tombstones(*texts: str, key: bytes = b"alice") -> Tombstones:
    fingerprinter = Fingerprinter(key, VOCABULARY)
    return Tombstones(fingerprinter.fingerprints(texts), fingerprinter)


@pytest.mark.parametrize(
    "text",
    [
        "My dog is called Rex.",
        "the user's dog is called Rex",
        "- My dog  IS called rex",
    ],
)
def test_a_tombstone_knows_its_sentence_again(text: str):
    assert tombstones(SAID).cover(text)


@pytest.mark.parametrize("text", ["My cat is called Tom.", "Rex", "", "Thanks!", "The dog barks at night."])
def test_a_tombstone_bars_nothing_else(text: str):
    assert not tombstones(SAID).cover(text)


def test_a_tombstone_holds_no_words_and_depends_on_its_key():
    fingerprinter = Fingerprinter(b"alice", VOCABULARY)
    [mark, _] = fingerprinter.fingerprints([SAID])
    assert all(isinstance(number, int) for number in (mark.whole, *mark.words))
    [other, _] = Fingerprinter(b"bob", VOCABULARY).fingerprints([SAID])
    assert not set(mark.words) & set(other.words)


def test_small_talk_leaves_no_tombstone():
    assert not tombstones("Thanks! Great. Good morning, how are you?")


def test_a_text_is_filtered_by_sentence():
    text = "They garden.\n- My dog is called Rex.\n- The plum tree blooms in March."
    assert tombstones(SAID).filter_text(text) == "They garden.\n- The plum tree blooms in March."
    assert tombstones().filter_text(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "My daughter has a peanut allergy; ask every restaurant.",
        "My daughter has a peanut allergy.",
        "She has a peanut allergy.",
        "By the way, he has a peanut allergy!",
    ],
)
def test_a_fact_about_somebody_else_is_another_one(text: str):
    assert not tombstones("I have a peanut allergy.").cover(text)
    assert tombstones("I have a peanut allergy.").cover("The user has a peanut allergy.")


def test_what_was_said_of_somebody_else_is_known_again_and_does_not_bar_what_is_said_of_oneself():
    forgotten = tombstones("She has a peanut allergy.")
    assert forgotten.cover("Well, she has a peanut allergy!")
    assert not forgotten.cover("I have a peanut allergy.")


def test_a_long_sentence_is_known_with_one_word_of_ten_changed():
    said = "The gate of the northern depot opens with code heliotrope, badge nine, lever green, seat blue, boot red."
    assert tombstones(said).cover(said.replace("badge nine", "badge ten"))
    assert not tombstones(said).cover(said.replace("lever green, seat blue, boot red", "and a key"))
