"""Lets the summarising model report which earlier statements are superseded, and checks its answer.

The request contains a few statements from memory with short ids. Beside the summary, the answer may name an id and the
new statement, and nothing else counts. Without a model the rules of `memory.long_term.claims` decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memory.language.sentences import Vocabulary, split_sentences, strip_list_mark
from memory.long_term.consolidation import split_superseded_section
from memory.summaries.summary import fence
from memory.tokens import estimate_text

ASK = (
    "<known> holds earlier statements with ids. Where the conversation makes one untrue, end with a section `## Over`:"
    " for each a line of its id, ` => `, and the user's sentence that replaces it, copied verbatim."
)
OVER_TOKENS = 200
"""Most tokens that this section may add to an answer."""
MOST_CHARS = 200
SHARE = 40
LEAST_TOKENS = 80
MOST_TOKENS = 400
ID_TOKENS = 4


def known_section(known: Sequence[str]) -> str:
    """Return the statements with their ids, fenced as data."""
    return fence("known", "\n".join(f"k{number}: {text}" for number, text in enumerate(known, start=1)))


def split_superseded(answer: str, known: Sequence[str]) -> tuple[str, tuple[tuple[int, str], ...]]:
    """Return (the summary alone, pairs of a known statement's index and the statement that supersedes it).

    Unknown ids are ignored.
    """
    if not known:
        return answer, ()
    text, named = split_superseded_section(answer)
    numbers = {f"k{number}": number - 1 for number in range(1, len(known) + 1)}
    pairs = ((numbers.get(over.older.strip("[]`*: ").casefold()), over.newer) for over in named)
    return text, tuple((number, newer) for number, newer in pairs if number is not None)


def choose_known(
    said: Iterable[str], known: Sequence[str], vocabulary: Vocabulary, span_tokens: int
) -> list[int]:
    """Return the indexes of the `known` statements, newest first, to ask about: the few that share most words with
    something that was `said`, then the newest, within a small share of the span's tokens."""
    sentences = [sentence for text in said for sentence in split_sentences(text)]
    new = [words for sentence in sentences if (words := vocabulary.content_words(sentence))]
    told, every = set(map(strip_list_mark, sentences)), frozenset[str]().union(*new)

    def nearness(statement: str) -> float:
        words = vocabulary.content_words(statement)
        # Most statements share no word at all, so they need no comparison with each sentence.
        if words.isdisjoint(every):
            return 0.0
        return max(len(words & one) / min(len(words), len(one)) for one in new)

    room = min(MOST_TOKENS, max(LEAST_TOKENS, span_tokens // SHARE))
    # Reversed, so that the newest of equal statements keeps its number.
    numbers = {text: number for number, text in reversed([*enumerate(known)])}
    fitting = [text for text in numbers if len(text) <= MOST_CHARS and text not in told]
    chosen = []
    for text in sorted(fitting, key=lambda text: (-nearness(text), numbers[text])):
        room -= estimate_text(text) + ID_TOKENS
        if room < 0:
            break
        chosen.append(numbers[text])
    return chosen
