"""The bytes of the vectors, and which documents are near a question. Knows numpy and no database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

STORED = np.dtype("<f2")
OWNER = np.dtype("<i4")
NEAR_DEVIATIONS = 1.5
"""A document is near when it is so much nearer than documents are on average: what a cosine means differs by model."""
TELLING_DEVIATIONS = 4.0
"""When the nearest stands out so far, it fits the question even where no word of it does."""

Stored = bytes | memoryview
Cosines = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Near:
    """How far beyond `NEAR_DEVIATIONS` each near document is, nearest first. `stands_out`: the nearest fits, whatever
    its words are."""

    nearness: Mapping[int, float]
    stands_out: bool


NOTHING_NEAR = Near({}, False)


def pack_vectors(vectors: Sequence[Sequence[float]]) -> bytes:
    """Each at length 1, so that their product is the cosine."""
    rows = np.asarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1.0)).astype(STORED).tobytes()


def pack_ordinals(ordinals: Sequence[int]) -> bytes:
    return np.asarray(ordinals, dtype=OWNER).tobytes()


def drop_vectors(ordinals: bytes, vectors: bytes, gone: Sequence[int]) -> tuple[bytes, bytes]:
    owners = np.frombuffer(ordinals, OWNER)
    rows = np.frombuffer(vectors, STORED).reshape(len(owners), -1)
    kept = ~np.isin(owners, np.asarray(gone))
    return owners[kept].tobytes(), rows[kept].tobytes()


def find_near(
    blocks: Sequence[tuple[Stored, Stored]], asked: Sequence[float], limit: int, among: Mask
) -> Near:
    """`blocks` are `(ordinals, vectors)` as stored; a document is as near as the nearest of its vectors. `among` says
    by ordinal which may be found: they alone are compared with each other."""
    question = np.frombuffer(pack_vectors([asked]), STORED).astype(np.float32)
    owners = np.frombuffer(b"".join(ordinals for ordinals, _ in blocks), OWNER)
    stored = np.frombuffer(b"".join(vectors for _, vectors in blocks), STORED)
    if not len(owners) or len(stored) != len(owners) * len(question):
        return NOTHING_NEAR
    cosines = stored.reshape(len(owners), -1).astype(np.float32) @ question
    nearest = np.full(max(len(among), int(owners.max()) + 1), -np.inf, dtype=np.float32)
    np.maximum.at(nearest, owners, cosines)
    return _standing_out(np.where(among, nearest[: len(among)], -np.inf), limit)


def _standing_out(nearest: Cosines, limit: int) -> Near:
    """`nearest` by ordinal, -inf for what may not be found or has no vectors."""
    known = nearest[np.isfinite(nearest)]
    if not len(known):
        return NOTHING_NEAR
    deviations = (nearest - known.mean()) / max(float(known.std()), 1e-6)
    order = np.argsort(-deviations, kind="stable")[:limit]
    near = [int(ordinal) for ordinal in order if deviations[ordinal] > NEAR_DEVIATIONS]
    nearness = {ordinal: float(deviations[ordinal]) - NEAR_DEVIATIONS for ordinal in near}
    return Near(nearness, stands_out=bool(deviations[order[0]] > TELLING_DEVIATIONS))
