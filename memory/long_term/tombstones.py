"""Recognises forgotten sentences by keyed fingerprints, without keeping their text.

A sentence is recognised word for word, or if 0.9 of its telling words and of the forgotten one's are shared. A sentence
that says more is a different one, and so is one that begins with "She" or "His", which is about somebody else. Without
the key nobody can test which words a fingerprint represents.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from memory.language.sentences import Vocabulary, split_sentences, strip_list_mark

COVERED = 0.9
"""Two sentences are the same if each has this share of the other's words."""
LEAST_WORDS = 2
MAX_WORDS = 24
SHORT = 8
"""Of up to this many words none may differ: COVERED allows the first of ten. So the first word is the same."""
_SUBJECT = re.compile(r"\b(?:the\s+)?(?:user|assistant)(?:['’]s)?\b", re.IGNORECASE)
"""How summaries name the speaker."""
_LEAD = re.compile(
    r"^(?:by the way|btw|as i (?:said|told you)|actually|well|also|and|oh|fyi|übrigens|au fait|por cierto)[,:]?\s+",
    re.IGNORECASE,
)
_SOMEBODY_ELSE = re.compile(r"(?:she|he|her|his|er|sein|seine[mrns]?|elle|él|ella)\b", re.IGNORECASE)
"""First words of a sentence about somebody else. Summaries call the user `They`, so that is not one of them."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """`whole` is the hash of the sentence, `words` the hashes of its telling words in ascending order."""

    whole: int
    words: tuple[int, ...]

    @property
    def is_short(self) -> bool:
        return len(self.words) <= SHORT


class Fingerprinter:
    """Makes fingerprints with one user's key."""

    def __init__(self, key: bytes, vocabulary: Vocabulary) -> None:
        self._key = key
        self._vocabulary = vocabulary

    def fingerprint(self, sentence: str) -> Fingerprint | None:
        """Return the sentence's fingerprint; None if it has too few words to be learned."""
        bare = _SUBJECT.sub(" ", _LEAD.sub("", strip_list_mark(sentence)))
        words = self._vocabulary.gist(bare)
        if len(words) < LEAST_WORDS:
            return None
        # No word begins with this sign, so no text can imitate the mark.
        about = {"@somebody else"} if _SOMEBODY_ELSE.match(bare.strip()) else set()
        # Sort by hash, so that the same words of a long sentence are kept each time.
        hashed = sorted(self._hash(word) for word in words | about)[:MAX_WORDS]
        return Fingerprint(self._hash(" ".join(strip_list_mark(sentence).casefold().split())), tuple(hashed))

    def fingerprints(self, texts: Iterable[str]) -> Iterator[Fingerprint]:
        """Yield the fingerprint of every sentence, each once."""
        seen: set[int] = set()
        for sentence in dict.fromkeys(one for text in texts for one in split_sentences(text)):
            found = self.fingerprint(sentence)
            if found is not None and found.whole not in seen:
                seen.add(found.whole)
                yield found

    def _hash(self, text: str) -> int:
        # Signed, like the 8-byte columns that store it.
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, key=self._key).digest()
        return int.from_bytes(digest, "little", signed=True)


class Tombstones:
    """All forgotten sentences of one user, as fingerprints."""

    def __init__(self, fingerprints: Iterable[Fingerprint], fingerprinter: Fingerprinter) -> None:
        self._fingerprint: Callable[[str], Fingerprint | None] = fingerprinter.fingerprint
        self._prints: list[Fingerprint] = []
        self._whole: set[int] = set()
        self._by_word: dict[int, list[int]] = defaultdict(list)
        for found in fingerprints:
            self._whole.add(found.whole)
            for word in found.words:
                self._by_word[word].append(len(self._prints))
            self._prints.append(found)

    def __bool__(self) -> bool:
        return bool(self._whole)

    def cover(self, sentence: str) -> bool:
        """Return whether the sentence repeats a forgotten one."""
        return bool(self.covering(sentence))

    def covering(self, sentence: str) -> set[int]:
        """Return the forgotten sentences that this one repeats, each as the `whole` of its fingerprint."""
        found = self._fingerprint(sentence) if self._whole else None
        if found is None:
            return set()
        shared = Counter(number for word in found.words for number in self._by_word.get(word, ()))
        said = {
            self._prints[number].whole
            for number, count in shared.items()
            if count >= COVERED * max(len(found.words), len(self._prints[number].words))
        }
        return said | ({found.whole} & self._whole)

    def filter_text(self, text: str) -> str:
        """Return the text without forgotten sentences; unchanged if it contains none."""
        if not self._whole:
            return text
        pieces = split_sentences(text)
        kept = [piece for piece in pieces if not self.cover(piece)]
        return text if len(kept) == len(pieces) else "".join(kept).strip()
