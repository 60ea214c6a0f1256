"""Users of two web processes and a worker chat while these, PostgreSQL and Redis fail and come back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.going_through import USERS, go_through
from tests.faults.installations import faulty_model, production
from tests.faults.outages import Outages
from tests.servers.postgres import Postgres


@pytest.mark.slow
@pytest.mark.mechanism(
    "contract.accepted", "contract.once", "contract.order", "contract.ends", "contract.lease"
)
def test_no_message_is_lost_duplicated_or_unreported(
    processes: object, postgres: Postgres, tmp_path: Path
) -> None:
    with (
        faulty_model() as model,
        production(tmp_path / "production", model, postgres, USERS) as ground,
    ):
        go_through(ground, [name for name in ground.outages.kinds if name not in Outages.IN_ONE_PROCESS])
