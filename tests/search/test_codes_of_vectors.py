import numpy as np
import pytest

from chatapp.recall.vectors import (
    NEAR_DOCUMENTS,
    NEAREST_BY_CODE,
    NOTHING_NEAR,
    Codes,
    NearDocuments,
    VectorSelection,
    count_code_words,
    drop_codes,
    find_near,
    join_codes,
    pack_codes,
    pack_ordinals,
    pack_vectors,
    pick_documents,
    unpack_codes,
)

COUNT, DIMENSIONS, PLANTED = 2_000, 100, 1_234
DICE = np.random.default_rng(7)
QUESTION = DICE.normal(size=DIMENSIONS)
VECTORS = DICE.normal(size=(COUNT, DIMENSIONS))
VECTORS[PLANTED] = QUESTION + DICE.normal(size=DIMENSIONS) * 0.3


def block(first: int, last: int) -> tuple[bytes, bytes]:
    """Return a block with two vectors per document, of which the second is random."""
    ordinals = [ordinal for ordinal in range(first, last) for _ in range(2)]
    pairs = [vector for row in VECTORS[first:last] for vector in (row, DICE.normal(size=DIMENSIONS))]
    return pack_ordinals(ordinals), pack_codes(np.array(pairs).tolist())


BLOCKS = [block(0, 700), block(700, COUNT)]
WORDS = count_code_words(QUESTION.tolist())
CODES = join_codes([unpack_codes(*stored) for stored in BLOCKS], WORDS)
EVERYBODY = np.ones(COUNT, dtype=np.bool_)


def near_among(among: np.ndarray) -> tuple[VectorSelection, NearDocuments]:
    return near_in(VECTORS, CODES, among)


def near_in(vectors: np.ndarray, codes: Codes, among: np.ndarray) -> tuple[VectorSelection, NearDocuments]:
    picked = pick_documents(codes, QUESTION.tolist(), among)
    read = {ordinal: pack_vectors([vectors[ordinal]]) for ordinal in {*picked.nearest, *picked.sample}}
    return picked, find_near(picked, read, QUESTION.tolist())


def test_the_nearest_of_many_documents_is_found_by_reading_few_vectors():
    picked, near = near_among(EVERYBODY)
    assert len({*picked.nearest, *picked.sample}) < COUNT / 8
    assert next(iter(near.nearness)) == PLANTED
    assert near.stands_out


def test_excluded_documents_are_not_read():
    among = EVERYBODY.copy()
    among[PLANTED] = False
    picked, near = near_among(among)
    assert PLANTED not in {*picked.nearest, *picked.sample, *near.nearness}
    assert not near.stands_out


def test_the_number_of_near_documents_is_limited():
    _, near = near_among(EVERYBODY)
    assert len(near.nearness) == NEAR_DOCUMENTS
    assert min(near.nearness.values()) > 0


@pytest.mark.parametrize("same", [NEAR_DOCUMENTS + 1, NEAREST_BY_CODE + 10])
def test_the_latest_of_equally_near_documents_are_chosen(same: int):
    vectors = np.array(VECTORS)
    vectors[PLANTED] = VECTORS[0]
    vectors[5 : 5 + 7 * same : 7] = QUESTION
    codes = unpack_codes(pack_ordinals(range(COUNT)), pack_codes(vectors.tolist()))
    _, near = near_in(vectors, codes, EVERYBODY)
    assert [*near.nearness] == [5 + 7 * (same - 1 - back) for back in range(NEAR_DOCUMENTS)]
    assert min(near.nearness.values()) > 0


def test_documents_newer_than_the_known_ones_are_left_out():
    picked = pick_documents(CODES, QUESTION.tolist(), EVERYBODY[:1_000])
    assert max(*picked.nearest, *picked.sample) < 1_000


def test_dropped_documents_are_not_found():
    left = [unpack_codes(*drop_codes(ordinals, codes, [PLANTED])) for ordinals, codes in BLOCKS]
    assert PLANTED not in pick_documents(join_codes(left, WORDS), QUESTION.tolist(), EVERYBODY).nearest


def test_vectors_of_another_length_are_not_compared():
    assert (
        find_near(VectorSelection([1], [1]), {1: pack_vectors([[1.0, 2.0]])}, [1.0, 2.0, 3.0]) == NOTHING_NEAR
    )
