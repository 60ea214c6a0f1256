"""The short form of the soak: every model fault and these outages once, then everything is read back."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from tests.faults.installations import Ground
from tests.faults.journal import Journal
from tests.faults.model_faults import MODEL_FAULTS
from tests.faults.running import dealt, run_through
from tests.faults.users import User
from tests.servers.waiting import wait_for

USERS = 4
FAULTS_WITHIN_S = 300.0
"""Each fault takes its timeout, and as long again on a busy machine."""
WORDS = 80
"""An answer of two seconds, in which something breaks. More words in the same time would prove no more."""


def go_through(ground: Ground, outages: Sequence[str]) -> None:
    """Run all model faults and these outages. Fail with all problems."""
    journal = Journal()
    have_dealt = [threading.Event() for _ in ground.people]
    names = list(MODEL_FAULTS)

    def break_things(users: Sequence[User]) -> None:
        for name in outages:
            wait_for_a_question(journal)
            ground.outages.kinds[name]()
        for event, user in zip(have_dealt, users, strict=True):
            wait_for(
                lambda: event.is_set() or not user.is_alive(),  # noqa: B023
                what="every model fault",
                timeout_s=FAULTS_WITHIN_S,
                explain=lambda: f"{journal.counts}\n{ground.installation.output()}",
            )
        wait_for_a_question(journal)

    faults = lambda user: dealt(names[user :: len(ground.people)], have_dealt[user])  # noqa: E731
    problems = run_through(ground, journal, faults, break_things, WORDS)
    assert not problems, "\n".join([ground.installation.output(), str(journal.counts), *problems])
    assert len(journal.sent) >= len(names)


def wait_for_a_question(journal: Journal) -> None:
    """Wait for a new question, so that an answer is in progress when the next thing breaks."""
    before = len(journal.sent)
    wait_for(
        lambda: len(journal.sent) > before,
        what="another question",
        explain=lambda: "\n".join(journal.problems),
    )
