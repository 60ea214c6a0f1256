"""Ids increase strictly within a process."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Iterator
from itertools import pairwise

from chatapp.operations.database.ids import IdGenerator, name_process, new_id

MS = 1_000_000
NOON_NS = 1_750_000_000_000 * MS


def _increase(ids: list[uuid.UUID]) -> bool:
    return all(earlier < later for earlier, later in pairwise(ids))


def _standing(at_ns: int = NOON_NS) -> IdGenerator:
    return IdGenerator(clock_ns=lambda: at_ns)


def _millisecond(made: uuid.UUID) -> int:
    return made.int >> 80


def test_an_id_is_a_uuid_of_version_7_that_contains_its_millisecond():
    for made in (_standing().new_id() for _ in range(1000)):
        assert made.version == 7
        assert made.variant == uuid.RFC_4122
        assert _millisecond(made) == NOON_NS // MS


def test_ids_of_the_process_increase_and_contain_the_time():
    made = [new_id() for _ in range(10_000)]
    assert _increase(made)
    assert abs(_millisecond(made[0]) - time.time_ns() // MS) < 3_600_000


def test_ids_of_one_millisecond_increase_as_numbers_as_text_and_as_bytes():
    ids = _standing()
    made = [ids.new_id() for _ in range(10_000)]
    assert _increase(made)
    assert [str(one) for one in made] == sorted(str(one) for one in made)
    assert [one.bytes for one in made] == sorted(one.bytes for one in made)


def test_a_batch_of_ids_lies_between_the_ids_before_and_after_it():
    ids = _standing()
    first, some, between = ids.new_id(), ids.new_numbers(5_000), ids.new_id()
    numbers = [first.int, *some, between.int, *ids.new_numbers(0), *ids.new_numbers(2)]
    made = [uuid.UUID(int=number) for number in numbers]
    assert _increase(made)
    assert len(made) == 5_004
    assert {(one.version, _millisecond(one)) for one in made} == {(7, NOON_NS // MS)}


def test_ids_increase_while_the_clock_goes_backwards():
    clock: Iterator[int] = iter(range(NOON_NS, NOON_NS - 5_000 * MS, -MS))
    ids = IdGenerator(clock_ns=lambda: next(clock))
    made = [ids.new_id() for _ in range(5_000)]
    assert _increase(made)
    assert {_millisecond(one) for one in made} == {NOON_NS // MS}


def test_ids_follow_the_clock_again_once_it_has_caught_up():
    moments = iter([NOON_NS, NOON_NS - 3_600_000 * MS, NOON_NS + MS])
    ids = IdGenerator(clock_ns=lambda: next(moments))
    made = [ids.new_id() for _ in range(3)]
    assert _increase(made)
    assert _millisecond(made[-1]) == NOON_NS // MS + 1


def test_a_full_counter_carries_into_the_next_millisecond():
    ids = _standing()
    first = ids.new_id()
    ids._last |= (1 << 42) - 1
    second = ids.new_id()
    assert second > first
    assert _millisecond(second) == _millisecond(first) + 1
    assert (second.version, second.variant) == (7, uuid.RFC_4122)


def test_ids_increase_in_every_thread_and_none_is_made_twice():
    ids = _standing()
    start = threading.Barrier(16)
    made: list[list[uuid.UUID]] = [[] for _ in range(16)]

    def make(own: list[uuid.UUID]) -> None:
        start.wait()
        own.extend(ids.new_id() for _ in range(2_000))

    threads = [threading.Thread(target=make, args=(own,)) for own in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(map(_increase, made))
    # Ignore the random bits, because they would hide a duplicate counter.
    assert len({one.int >> 32 for own in made for one in own}) == 16 * 2_000


def _made_in_a_child(ids: IdGenerator, count: int) -> list[uuid.UUID]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, b"".join(ids.new_id().bytes for _ in range(count)))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return [uuid.UUID(bytes=told[at : at + 16]) for at in range(0, len(told), 16)]


def test_forked_workers_repeat_no_ids_of_their_parent_or_of_each_other():
    ids = _standing()
    before = [ids.new_id() for _ in range(100)]
    workers = [_made_in_a_child(ids, 100) for _ in range(4)]
    own = before + [ids.new_id() for _ in range(100)]
    assert all(len(made) == 100 and _increase([*before, *made]) for made in workers)
    assert _increase(own)
    everything = [*own, *(one for made in workers for one in made)]
    # Ignore the random bits: every process continues from a different counter.
    assert len({one.int >> 32 for one in everything}) == 600


def test_a_fork_while_another_thread_makes_an_id_does_not_deadlock_the_child():
    """The clock is read under the generator's lock, so the other thread holds that lock while the process forks."""
    is_inside, may_go_on = threading.Event(), threading.Event()
    main_thread = threading.get_ident()

    def clock_ns() -> int:
        if threading.get_ident() != main_thread:
            is_inside.set()
            may_go_on.wait()
        return NOON_NS

    ids = IdGenerator(clock_ns=clock_ns)
    other = threading.Thread(target=ids.new_id)
    other.start()
    is_inside.wait()
    try:
        made = _made_in_a_child(ids, 3)
    finally:
        may_go_on.set()
        other.join()
    assert len(made) == 3
    assert _increase(made)


def test_a_forked_process_has_a_name_of_its_own():
    own = name_process()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, name_process().encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        other = pipe.read()
    os.waitpid(child, 0)
    assert other not in ("", own)
    assert own == name_process()
