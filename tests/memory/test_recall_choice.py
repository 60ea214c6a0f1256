from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from memory.recall.ranking import MOST_PASSED_OVER, Candidate, RecallSize, select_recall

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
ROOM = RecallSize(100, 400)


def candidate(number: int, tokens: int) -> Candidate:
    return Candidate(str(number), f"Turn {number}.", 1.0, tokens, NOON + timedelta(minutes=number), number)


def test_recall_skips_texts_that_are_too_long_and_sorts_the_rest_by_time():
    best_first = [candidate(3, 40), candidate(2, 500), candidate(1, 40)]
    assert [chosen.key for chosen in select_recall(best_first, ROOM)] == ["1", "3"]


def test_recall_stops_reading_candidates_that_do_not_fit():
    read = []

    def candidates() -> Iterator[Candidate]:
        for number in range(1_000):
            read.append(number)
            yield candidate(number, 40 if number == 0 else 500)

    assert [chosen.key for chosen in select_recall(candidates(), ROOM)] == ["0"]
    assert len(read) <= MOST_PASSED_OVER + 2
