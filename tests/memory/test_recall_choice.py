from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from memory.ranking import MOST_PASSED_OVER, Candidate, RecallSize, select_recall

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
ROOM = RecallSize(100, 400)


def candidate(number: int, tokens: int) -> Candidate:
    return Candidate(str(number), f"Turn {number}.", 1.0, tokens, NOON + timedelta(minutes=number), number)


def test_what_is_too_long_is_passed_over_and_the_rest_is_in_the_order_of_time():
    best_first = [candidate(3, 40), candidate(2, 500), candidate(1, 40)]
    assert [chosen.key for chosen in select_recall(best_first, ROOM)] == ["1", "3"]


def test_no_more_are_read_when_nothing_fits_any_more():
    read = []

    def candidates() -> Iterator[Candidate]:
        for number in range(1_000):
            read.append(number)
            yield candidate(number, 40 if number == 0 else 500)

    assert [chosen.key for chosen in select_recall(candidates(), ROOM)] == ["0"]
    assert len(read) <= MOST_PASSED_OVER + 2
