"""Users chat while the embedded process is killed, drained or frozen, its database locked, disk full or clock moved."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.going_through import USERS, go_through
from tests.faults.installations import embedded, faulty_model


@pytest.mark.slow
@pytest.mark.mechanism(
    "contract.accepted", "contract.once", "contract.order", "contract.ends", "contract.errors"
)
def test_no_message_is_lost_duplicated_or_unreported(processes: object, tmp_path: Path) -> None:
    with faulty_model() as model, embedded(tmp_path / "embedded", model, USERS) as ground:
        go_through(ground, list(ground.outages.kinds))
