"""What came from a forgotten text is found again; what did not is left alone."""

from __future__ import annotations

import pytest
import snowballstemmer
from hypothesis import given
from hypothesis import strategies as st

from memory.redaction import Forgotten
from memory.sentences import Vocabulary, split_sentences
from memory.terms import Analyzer
from memory.tombstones import Fingerprinter, Tombstones

VOCABULARY = Vocabulary(Analyzer(snowballstemmer.stemmer("english").stemWord))
SAID = "My dog is called Rex. He eats two bowls of Pedigree-7 at 18:30."


def forgotten(*texts: str, common: set[str] | None = frozenset()) -> Forgotten:  # type: ignore[assignment]
    return Forgotten(texts, VOCABULARY, common=common)


@given(st.text(alphabet="ab .!?\n。-", max_size=80))
def test_the_sentences_of_a_text_joined_are_the_text(text: str):
    assert "".join(split_sentences(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "My dog is called Rex.",
        "- the user's DOG is called rex",
        "The user has a dog, Rex, and a cat.",
        "Feed Pedigree-7 in the evening.",
        "At 18:30 there is dinner.",
        "Assistant: Noted, Rex it is!",
    ],
)
def test_a_sentence_that_says_it_again_is_known_in_other_words_too(text: str):
    assert forgotten(SAID).carries(text)
    assert (
        forgotten(SAID).redact(f"{text}\nThe plum tree blooms in March.") == "The plum tree blooms in March."
    )


@pytest.mark.parametrize("text", ["How lovely.", "The cat is named Tom.", "We meet at 19:00.", "Thanks!", ""])
def test_what_has_nothing_to_do_with_it_stays(text: str):
    assert forgotten(SAID).redact(text) == text


def test_words_that_are_said_elsewhere_give_nothing_away():
    common = set(VOCABULARY.telling_words("Rex likes the garden"))
    assert not forgotten(SAID, common=common).carries("Rex is in the garden with Anna.")
    assert forgotten(SAID).carries("Rex is in the garden with Anna.")


def test_what_people_said_themselves_is_not_forgotten_for_a_single_word():
    assert not forgotten(SAID, common=None).carries("Our king was called Arthur Rex the Third of Narnia.")


def test_a_lead_goes_with_the_last_of_what_it_led_to():
    assert forgotten(SAID).redact("He gardens.\n\nWord for word:\n- My dog is called Rex.") == "He gardens."


def tombstones(*texts: str, key: bytes = b"alice") -> Tombstones:
    fingerprinter = Fingerprinter(key, VOCABULARY)
    return Tombstones(fingerprinter.fingerprints(texts), fingerprinter)


@pytest.mark.parametrize(
    "text",
    [
        "My dog is called Rex.",
        "the user's dog is called Rex",
        "- My dog  IS called rex",
        "The dog is still called Rex, now five.",
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


@given(
    st.lists(
        st.sampled_from(
            ["Rex's", "dog,", "PEDIGREE-7", "(18:30)", "4711.", "7.", "ate", "bowls.", "the", "犬", "Tom!"]
        ),
        max_size=8,
    )
)
def test_a_text_carries_it_where_one_of_its_sentences_does(words: list[str]):
    text = " ".join(words)
    for of in (
        forgotten(SAID),
        forgotten(SAID, common=None),
        forgotten(f"{SAID} The code is 4711. 私の犬はレックスです。"),
    ):
        assert bool(of.carried(text)) == any(of.carries(sentence) for sentence in split_sentences(text))


@pytest.mark.parametrize(
    "text", ["My contract ends in 2027.", "Ring INV-20 when it is paid.", "Dinner is at 18:30."]
)
def test_what_people_said_themselves_may_share_a_year_a_time_or_the_beginning_of_a_number(text: str):
    said = "The plum tree blooms in March 2027, at 18:30, says invoice INV-2041."
    assert not forgotten(said, common=None).carries(text)
    assert forgotten(said, common=None).carries("Who wrote INV-2041?")
