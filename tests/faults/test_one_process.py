"""Users of the embedded process chat while it is killed, drained, frozen, locked out, out of room and out of time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.going_through import USERS, go_through
from tests.faults.installations import embedded, faulty_model


@pytest.mark.slow
@pytest.mark.mechanism(
    "contract.accepted", "contract.once", "contract.order", "contract.ends", "contract.errors"
)
def test_nothing_is_lost_doubled_or_untold(processes: object, tmp_path: Path) -> None:
    with faulty_model() as model, embedded(tmp_path / "embedded", model, USERS) as ground:
        go_through(ground, list(ground.outages.kinds))
