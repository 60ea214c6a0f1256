"""Lets users chat while things break, then stops them and reads everything back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

from tests.faults.checker import check
from tests.faults.installations import Ground
from tests.faults.journal import Journal
from tests.faults.users import User

END_S = 120.0


def run_through(
    ground: Ground,
    journal: Journal,
    faults_of: Callable[[int], Iterable[str]],
    break_things: Callable[[Sequence[User]], None],
    words: int = 40,
) -> list[str]:
    """Run all users and return all problems. `faults_of` returns the model faults that a user's questions request,
    `words` is the length of each answer.
    """
    users = [
        User(ground.installation, person, journal, faults_of(number), words, seed=number)
        for number, person in enumerate(ground.people)
    ]
    for user in users:
        user.start()
    break_things(users)
    for user in users:
        user.wants_to_stop.set()
    for user in users:
        user.join(END_S)
        if user.is_alive():
            journal.complain(f"{user.person} did not come to an end.")
    ground.installation.start()
    found = check(ground.installation, users, journal)
    for user in users:
        user.watcher.stop()
    return list(dict.fromkeys([*found, *journal.problems]))


def dealt(names: Iterable[str], has_dealt: threading.Event) -> Iterator[str]:
    """Yield these faults, set the event, then yield "none" forever."""
    yield from names
    has_dealt.set()
    while True:
        yield "none"
