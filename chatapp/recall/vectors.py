"""The byte format of vectors, and the search for documents near a question, without database access.

Every vector has a code of a few bytes: the signs of its numbers. A question is compared with all codes. Only the
vectors of the nearest by code, and of a sample of all, are then read to compute their cosines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from agents.arrays import np, npt

STORED = "<f2"
OWNER = "<i4"
CODE_BYTES = 8
"""Codes are padded to a multiple of this, so that they can be compared as 64-bit integers."""
COSINE_DIGITS = 5
NEAREST_BY_CODE = 160
SAMPLE = 80
NEAR_DEVIATIONS = 1.5
"""A document is near if its cosine exceeds the average by this many deviations, as cosines differ by model."""
NEAR_DOCUMENTS = 40
"""The most near documents. In a long history, chance alone brings many beyond any deviation."""
LEAST_NEARNESS = 0.1
"""The minimum nearness of a near document, in deviations, because many may be equally near."""
STANDOUT_DEVIATIONS = 4.0
"""If the nearest exceeds the average by this much, it matches the question even without a common word."""

Stored = bytes | memoryview
Mask: TypeAlias = "npt.NDArray[np.bool_]"


@dataclass(frozen=True, slots=True)
class NearDocuments:
    """`nearness` of the near documents: their lead over the first that is not near, in deviations, nearest first, of
    equal ones the later first. `stands_out`: the nearest matches even without a common word."""

    nearness: Mapping[int, float]
    stands_out: bool


NOTHING_NEAR = NearDocuments({}, False)


@dataclass(frozen=True, slots=True)
class VectorSelection:
    """Ordinals of documents whose vectors are read: the nearest by their codes, and a sample of all."""

    nearest: list[int]
    sample: list[int]


def pack_vectors(vectors: Sequence[Sequence[float]]) -> bytes:
    """Return the vectors as stored, each scaled to length 1, so that their dot product is the cosine."""
    rows = np.asarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    # A zero vector stays zero, so that its cosine is 0 instead of NaN.
    return (rows / np.where(lengths > 0, lengths, 1.0)).astype(STORED).tobytes()


def pack_codes(vectors: Sequence[Sequence[float]]) -> bytes:
    signs = np.packbits(np.asarray(vectors, dtype=np.float32) > 0, axis=1)
    # The padding is the same in all codes, so that it adds no difference.
    return np.pad(signs, ((0, 0), (0, -signs.shape[1] % CODE_BYTES))).tobytes()


def pack_ordinals(ordinals: Sequence[int]) -> bytes:
    return np.asarray(ordinals, dtype=OWNER).tobytes()


def drop_codes(ordinals: Stored, codes: Stored, gone: Sequence[int]) -> tuple[bytes, bytes]:
    owners = np.frombuffer(ordinals, OWNER)
    rows = np.frombuffer(codes, np.uint8).reshape(len(owners), -1)
    kept = ~np.isin(owners, np.asarray(gone))
    return owners[kept].tobytes(), rows[kept].tobytes()


def have_same_length(ordinals: Stored, codes: Stored, more_ordinals: Stored, more_codes: Stored) -> bool:
    """Return whether all these codes have the same length."""
    return len(codes) * len(more_ordinals) == len(more_codes) * len(ordinals)


@dataclass(frozen=True, slots=True)
class Codes:
    """The document of each vector, in ascending order, and the vector's code. `words` has one row per eight bytes of
    the codes, so that a question is compared with all codes at once."""

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
    # Native byte order is fine: only differing bits count, and the question is read the same way.
    return Codes(owners, np.frombuffer(codes, np.uint64).reshape(len(owners), -1).T)


def join_codes(parts: Sequence[Codes], code_words: int) -> Codes:
    """Concatenate the codes; each code has `code_words` words."""
    nothing = Codes(np.zeros(0, OWNER), np.zeros((code_words, 0), np.uint64))
    owners = np.concatenate([part.owners for part in (nothing, *parts)])
    words = np.concatenate([part.words for part in (nothing, *parts)], axis=1)
    return Codes(owners, np.ascontiguousarray(words))


def count_code_words(vector: Sequence[float]) -> int:
    return -(-len(vector) // (8 * CODE_BYTES))


def pick_documents(codes: Codes, asked: Sequence[float], among: Mask) -> VectorSelection:
    """Return the documents whose vectors to read. `among` marks by ordinal the documents that may be found.

    A document is as near as its nearest vector; of equally near documents, the later are picked. The codes must be as
    long as the question's.
    """
    question = np.frombuffer(pack_codes([asked]), np.uint64)
    if not len(codes.owners):
        return VectorSelection([], [])
    # uint8 would overflow for vectors of more than 255 numbers.
    differing = np.zeros(len(codes.owners), dtype=np.uint16)
    for words, word in zip(codes.words, question, strict=True):
        differing += np.bitwise_count(words ^ word)
    starts = np.flatnonzero(np.append(True, codes.owners[1:] != codes.owners[:-1]))
    known, least = codes.owners[starts], np.minimum.reduceat(differing, starts)
    # Codes are read after the index was opened, and may include documents that the index does not know.
    inside = known < len(among)
    inside[inside] = among[known[inside]]
    known, least = known[inside], least[inside]
    # Reversed, so that the stable sort puts later documents before equally near ones.
    near = np.flatnonzero(least <= _bits_of_nearest(least, NEAREST_BY_CODE))[::-1]
    nearest = known[near[np.argsort(least[near], kind="stable")][:NEAREST_BY_CODE]]
    # Evenly spaced instead of random, so that a question gets the same answer each time, on every database.
    spaced = known[np.linspace(0, len(known) - 1, min(SAMPLE, len(known))).astype(np.int64)]
    return VectorSelection(nearest.tolist(), spaced.tolist())


def _bits_of_nearest(differing: npt.NDArray[np.uint16], count: int) -> int:
    """Return the most bits by which any of the nearest `count` codes differs."""
    # A histogram avoids sorting the codes of all documents. The numbers are small.
    return int(np.searchsorted(np.cumsum(np.bincount(differing)), count)) if len(differing) else 0


def find_near(
    picked: VectorSelection, vectors: Mapping[int, Stored], asked: Sequence[float]
) -> NearDocuments:
    """Return the near documents. `vectors` has the stored vectors of the picked documents, by ordinal."""
    question = np.frombuffer(pack_vectors([asked]), STORED)
    cosines = _cosines(vectors, question)
    sample = np.array([cosines[ordinal] for ordinal in picked.sample if ordinal in cosines])
    if not len(sample):
        return NOTHING_NEAR
    # All may be equally near, e.g. a single document. The divisor must not be 0.
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
    return NearDocuments(
        nearness={ordinal: max(deviations[ordinal] - least, LEAST_NEARNESS) for ordinal in near},
        stands_out=bool(near) and deviations[near[0]] > STANDOUT_DEVIATIONS,
    )


def _cosines(vectors: Mapping[int, Stored], question: npt.NDArray[np.float16]) -> dict[int, float]:
    """Return the cosine of each document's nearest vector, without vectors of another length.

    Round them, because floating-point sums depend on where a row lies, and equal vectors must get equal cosines.
    """
    comparable = {
        at: stored for at, stored in vectors.items() if stored and not len(stored) % question.nbytes
    }
    if not comparable:
        return {}
    rows = np.frombuffer(b"".join(comparable.values()), STORED).reshape(-1, len(question))
    # Convert first, because NumPy multiplies float16 without BLAS.
    cosines = rows.astype(np.float32) @ question.astype(np.float32)
    sizes = [len(stored) // question.nbytes for stored in comparable.values()]
    nearest = (
        np.maximum.reduceat(cosines, np.cumsum([0, *sizes[:-1]])).astype(np.float64).round(COSINE_DIGITS)
    )
    return dict(zip(comparable, nearest.tolist(), strict=True))
