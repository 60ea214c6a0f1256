"""One service for the tests of a module, which the attacks must not harm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fixtures.processes import ServiceStarter, report_output
from tests.servers.service import Service


@pytest.fixture(scope="module")
def attacked(start_shared: ServiceStarter) -> Service:
    return start_shared(FRAMES_PER_MINUTE="0")


@pytest.fixture
def service(request: pytest.FixtureRequest, attacked: Service) -> Iterator[Service]:
    """Yield the module's service. After each attack, check that it still responds and logged no traceback."""
    yield attacked
    report_output(request, [attacked])
    assert attacked.is_ready()
    assert "Traceback" not in attacked.output()
