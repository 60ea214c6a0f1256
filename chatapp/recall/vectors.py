"""The byte format of vectors, and which documents are near a question, without a database.

Every vector has a code of a few bytes: the signs of its numbers. A question is compared with all codes; only the
vectors of the nearest by code, and of a sample of all, are then read to measure how near they really are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from agents.arrays import np, npt

STORED = "<f2"
OWNER = "<i4"
CODE_BYTES = 8
"""Codes are padded to a multiple of it, so that they are compared as whole numbers."""
COSINE_DIGITS = 5
NEAREST_BY_CODE = 160
SAMPLE = 80
NEAR_DEVIATIONS = 1.5
"""A document is near when it is so much nearer than the average: what a cosine means differs by model."""
NEAR_DOCUMENTS = 40
"""At most so many are near: in a long history, chance alone brings many beyond any deviation."""
LEAST_NEARNESS = 0.1
"""The least nearness of a near document, in deviations: many may be equally near."""
TELLING_DEVIATIONS = 4.0
"""When the nearest is so far beyond the average, it fits the question even where no word of it does."""

Stored = bytes | memoryview
Mask: TypeAlias = "npt.NDArray[np.bool_]"


@dataclass(frozen=True, slots=True)
class Near:
    """How much nearer each near document is than the first that is not, in deviations; nearest first, of equals the
    later first. `stands_out`: the nearest fits, even with other words."""

    nearness: Mapping[int, float]
    stands_out: bool


NOTHING_NEAR = Near({}, False)


@dataclass(frozen=True, slots=True)
class Picked:
    """Ordinals whose vectors are read: the nearest by their codes, and a sample of all."""

    nearest: list[int]
    sample: list[int]


def pack_vectors(vectors: Sequence[Sequence[float]]) -> bytes:
    """Return the vectors as stored, each scaled to length 1, so that their product is the cosine."""
    rows = np.asarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    # A vector of zeros has no direction: it stays zeros, whose cosine is 0, instead of becoming NaN.
    return (rows / np.where(lengths > 0, lengths, 1.0)).astype(STORED).tobytes()


def pack_codes(vectors: Sequence[Sequence[float]]) -> bytes:
    signs = np.packbits(np.asarray(vectors, dtype=np.float32) > 0, axis=1)
    # Padding is the same in all codes, so that it adds no difference.
    return np.pad(signs, ((0, 0), (0, -signs.shape[1] % CODE_BYTES))).tobytes()


def pack_ordinals(ordinals: Sequence[int]) -> bytes:
    return np.asarray(ordinals, dtype=OWNER).tobytes()


def drop_codes(ordinals: Stored, codes: Stored, gone: Sequence[int]) -> tuple[bytes, bytes]:
    owners = np.frombuffer(ordinals, OWNER)
    rows = np.frombuffer(codes, np.uint8).reshape(len(owners), -1)
    kept = ~np.isin(owners, np.asarray(gone))
    return owners[kept].tobytes(), rows[kept].tobytes()


def fits_behind(ordinals: Stored, codes: Stored, more_ordinals: Stored, more_codes: Stored) -> bool:
    """Return whether all of these codes are of one length."""
    return len(codes) * len(more_ordinals) == len(more_codes) * len(ordinals)


@dataclass(frozen=True, slots=True)
class Codes:
    """The document of every vector, in ascending order, and its code. `words` has one row for each eight bytes of the
    codes, so that a question is compared with all of them at once."""

    owners: npt.NDArray[np.int32]
    words: npt.NDArray[np.uint64]

    @property
    def size_bytes(self) -> int:
        return self.owners.nbytes + self.words.nbytes

    def before(self, end: int) -> Codes:
        """Return the first `end` codes."""
        return Codes(self.owners[:end], self.words[:, :end])


def unpack_codes(ordinals: Stored, codes: Stored) -> Codes:
    owners = np.frombuffer(ordinals, OWNER)
    # In the machine's byte order: only differing bits count, and the question is read the same way.
    return Codes(owners, np.frombuffer(codes, np.uint64).reshape(len(owners), -1).T)


def join_codes(parts: Sequence[Codes], code_words: int) -> Codes:
    """Return the codes in this order; each code has `code_words` words."""
    nothing = Codes(np.zeros(0, OWNER), np.zeros((code_words, 0), np.uint64))
    owners = np.concatenate([part.owners for part in (nothing, *parts)])
    words = np.concatenate([part.words for part in (nothing, *parts)], axis=1)
    return Codes(owners, np.ascontiguousarray(words))


def count_code_words(vector: Sequence[float]) -> int:
    return -(-len(vector) // (8 * CODE_BYTES))


def pick_documents(codes: Codes, asked: Sequence[float], among: Mask) -> Picked:
    """Return the documents whose vectors are worth reading. `among` says by ordinal which may be found.

    A document is as near as the nearest of its vectors; of equally near ones the later are picked. The codes are as
    long as the question's.
    """
    question = np.frombuffer(pack_codes([asked]), np.uint64)
    if not len(codes.owners):
        return Picked([], [])
    # In one byte, vectors of more than 255 numbers would overflow.
    differing = np.zeros(len(codes.owners), dtype=np.uint16)
    for words, word in zip(codes.words, question, strict=True):
        differing += np.bitwise_count(words ^ word)
    starts = np.flatnonzero(np.append(True, codes.owners[1:] != codes.owners[:-1]))
    known, least = codes.owners[starts], np.minimum.reduceat(differing, starts)
    # Codes are read after the index was opened, and may have documents that it does not know.
    inside = known < len(among)
    inside[inside] = among[known[inside]]
    known, least = known[inside], least[inside]
    # Turned round, so that the stable sort leaves the later ones ahead of their equals.
    near = np.flatnonzero(least <= _bits_of_nearest(least, NEAREST_BY_CODE))[::-1]
    nearest = known[near[np.argsort(least[near], kind="stable")][:NEAREST_BY_CODE]]
    # Spaced and not drawn by chance: the same question has the same answer each time, on every database.
    spaced = known[np.linspace(0, len(known) - 1, min(SAMPLE, len(known))).astype(np.int64)]
    return Picked(nearest.tolist(), spaced.tolist())


def _bits_of_nearest(differing: npt.NDArray[np.uint16], count: int) -> int:
    """Return by how many bits the nearest `count` differ at most."""
    # Counted, because they are small numbers: sorting would go through the codes of all documents.
    return int(np.searchsorted(np.cumsum(np.bincount(differing)), count)) if len(differing) else 0


def find_near(picked: Picked, vectors: Mapping[int, Stored], asked: Sequence[float]) -> Near:
    """Return the near documents. `vectors` are those of the documents picked, by ordinal, as stored."""
    question = np.frombuffer(pack_vectors([asked]), STORED)
    cosines = _cosines(vectors, question)
    sample = np.array([cosines[ordinal] for ordinal in picked.sample if ordinal in cosines])
    if not len(sample):
        return NOTHING_NEAR
    # All may be equally near, as one document is: the spread by which is divided must not be 0.
    usual, spread = float(sample.mean()), max(float(sample.std()), 1e-6)
    deviations = {
        ordinal: (cosines[ordinal] - usual) / spread for ordinal in picked.nearest if ordinal in cosines
    }
    order = sorted(
        (ordinal for ordinal, deviation in deviations.items() if deviation > NEAR_DEVIATIONS),
        key=lambda ordinal: (-deviations[ordinal], -ordinal),
    )
    near, beyond = order[:NEAR_DOCUMENTS], order[NEAR_DOCUMENTS:]
    least = deviations[beyond[0]] if beyond else NEAR_DEVIATIONS
    return Near(
        nearness={ordinal: max(deviations[ordinal] - least, LEAST_NEARNESS) for ordinal in near},
        stands_out=bool(near) and deviations[near[0]] > TELLING_DEVIATIONS,
    )


def _cosines(vectors: Mapping[int, Stored], question: npt.NDArray[np.float16]) -> dict[int, float]:
    """Return the cosine of each document's nearest vector, without vectors of another length.

    They are rounded, because the sum of products depends on where a row lies: equal vectors get equal cosines.
    """
    comparable = {
        at: stored for at, stored in vectors.items() if stored and not len(stored) % question.nbytes
    }
    if not comparable:
        return {}
    rows = np.frombuffer(b"".join(comparable.values()), STORED).reshape(-1, len(question))
    # NumPy multiplies numbers of two bytes one by one, without BLAS.
    cosines = rows.astype(np.float32) @ question.astype(np.float32)
    sizes = [len(stored) // question.nbytes for stored in comparable.values()]
    nearest = (
        np.maximum.reduceat(cosines, np.cumsum([0, *sizes[:-1]])).astype(np.float64).round(COSINE_DIGITS)
    )
    return dict(zip(comparable, nearest.tolist(), strict=True))
