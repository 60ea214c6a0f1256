"""docker-compose.yml, read as Compose reads it; no Docker engine is needed."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
OURS = ("web", "worker", "beat", "migrate")
SET_BY_THE_IMAGE = {"HOST", "PORT", "DATA_DIR", "STATIC_ROOT"}


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]


def test_every_documented_variable_is_passed_on(services: dict[str, Any]) -> None:
    documented = set(re.findall(r"^# ([A-Z][A-Z0-9_]*)=", (ROOT / ".env.example").read_text(), re.MULTILINE))
    assert len(documented) > 40
    for name in OURS:
        assert documented - SET_BY_THE_IMAGE <= set(services[name]["environment"])


def test_no_service_has_more_rights_than_it_needs(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["read_only"] is True, name
        assert name == "proxy" or "ports" not in service


def test_the_password_is_made_once_and_given_in_both_forms(services: dict[str, Any], tmp_path: Path) -> None:
    def make(**env: str) -> tuple[str, str]:
        script = services["passwords"]["command"][2].replace("$$", "$").replace("/secrets", str(tmp_path))
        subprocess.run(["sh", "-c", script], check=True, env={"PATH": "/usr/bin:/bin", **env})
        return (tmp_path / "postgres_password").read_text(), (tmp_path / "pgpass").read_text()

    password, line = make()
    assert len(password) > 30
    assert line == f"postgres:5432:*:palimpsest:{password}\n"
    assert (tmp_path / "pgpass").stat().st_mode & 0o777 == 0o600  # libpq ignores one that others may read
    assert make(POSTGRES_PASSWORD="another") == (password, line)
    (tmp_path / "postgres_password").unlink()
    assert make(POSTGRES_PASSWORD=r"own:with\signs") == (
        r"own:with\signs",
        "postgres:5432:*:palimpsest:own\\:with\\\\signs\n",
    )


def test_no_password_is_the_same_everywhere() -> None:
    assert not re.search(r"PASSWORD[^\n]*:-[^}$]+}", (ROOT / "docker-compose.yml").read_text())
