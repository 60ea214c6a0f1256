"""Texts derived from a forgotten text are recognised; other texts are not changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.language.sentences import Vocabulary, split_sentences
from memory.language.terms import Analyzer
from memory.long_term.quotes import Quotes
from memory.long_term.tombstones import Fingerprinter, Tombstones

VOCABULARY = Vocabulary(Analyzer())
SAID = "My dog is called Rex. He eats two bowls of Pedigree-7 at 18:30."


def quotes(*texts: str) -> Quotes:
    return Quotes(texts, VOCABULARY)


@given(st.text(alphabet="ab .!?\n。-", max_size=80))
def test_joining_the_sentences_of_a_text_gives_the_text(text: str):
    assert "".join(split_sentences(text)) == text


@pytest.mark.parametrize(
    "text",
    ["My dog is called Rex.", "As I said: my DOG  is called rex!", "Feed Pedigree-7 in the evening."],
)
def test_a_whole_sentence_or_an_identifier_is_a_quote(text: str):
    assert quotes(SAID).are_in(text)
    assert quotes(SAID).take_out(f"{text} The plum tree blooms.") == "The plum tree blooms."


@pytest.mark.parametrize(
    "text",
    ["The user has a dog, Rex.", "We meet at 19:00.", "Thanks!", "", "My dog barks.", "Buy Pedigree-77."],
)
def test_single_words_of_a_text_are_no_quote(text: str):
    assert not quotes(SAID).are_in(text)
    assert quotes(SAID).take_out(text) == text


def test_only_sentences_with_facts_of_an_answer_are_quotes():
    polite = "Let me know if there is anything else I can help with."
    answered = Quotes((), VOCABULARY, answered=[f"The code is INV-2041. {polite}"])
    assert answered.are_in("They said the code is INV-2041.")
    assert not answered.are_in(polite)


@given(
    st.lists(
        st.sampled_from(["Rex", "dog", "Pedigree-7", "18:30", "bowls", "犬", "code", "4711"]), min_size=2
    )
)
def test_a_text_that_repeats_a_quote_has_all_its_words(words: list[str]):
    """The search for candidates in the index requires all of these words."""
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
def test_a_tombstone_covers_its_sentence_in_another_form(text: str):
    assert tombstones(SAID).cover(text)


@pytest.mark.parametrize("text", ["My cat is called Tom.", "Rex", "", "Thanks!", "The dog barks at night."])
def test_a_tombstone_does_not_cover_other_sentences(text: str):
    assert not tombstones(SAID).cover(text)


def test_a_tombstone_contains_only_numbers_and_depends_on_its_key():
    fingerprinter = Fingerprinter(b"alice", VOCABULARY)
    [mark, _] = fingerprinter.fingerprints([SAID])
    assert all(isinstance(number, int) for number in (mark.whole, *mark.words))
    [other, _] = Fingerprinter(b"bob", VOCABULARY).fingerprints([SAID])
    assert not set(mark.words) & set(other.words)


def test_small_talk_leaves_no_tombstone():
    assert not tombstones("Thanks! Great. Good morning, how are you?")


def test_tombstones_filter_a_text_by_sentence():
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
def test_a_tombstone_does_not_cover_the_same_fact_about_somebody_else(text: str):
    assert not tombstones("I have a peanut allergy.").cover(text)
    assert tombstones("I have a peanut allergy.").cover("The user has a peanut allergy.")


def test_a_tombstone_about_somebody_else_does_not_cover_the_fact_about_the_user():
    forgotten = tombstones("She has a peanut allergy.")
    assert forgotten.cover("Well, she has a peanut allergy!")
    assert not forgotten.cover("I have a peanut allergy.")


def test_a_tombstone_covers_a_long_sentence_with_one_word_changed():
    said = "The gate of the northern depot opens with code heliotrope, badge nine, lever green, seat blue, boot red."
    assert tombstones(said).cover(said.replace("badge nine", "badge ten"))
    assert not tombstones(said).cover(said.replace("lever green, seat blue, boot red", "and a key"))
