"""An OpenID Connect issuer in its own process. Must not import models: pytest loads this before Django is set up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers.service import OwnProcess


class RunningIssuer:
    """A running issuer at `address`; `say` sets the claims of a person."""

    def __init__(self, folder: Path) -> None:
        self.people = folder / "people.json"
        self.said: dict[str, dict[str, Any]] = {}
        self.process = OwnProcess(
            ["-m", "tests.servers.oidc_issuer", str(self.people)], folder / "issuer.log"
        )
        self.process.launch()
        self.address = self.process.wait_for_output(r"http://\S+").group()

    def say(self, person: str, **claims: Any) -> None:
        self.said[person] = claims
        self.people.write_text(json.dumps(self.said))


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningIssuer]:
    running = RunningIssuer(tmp_path_factory.mktemp("issuer"))
    yield running
    running.process.kill()
