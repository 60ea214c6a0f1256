"""Checks docker-compose.yml without a Docker engine."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml
from django.core.management import get_commands

from chatapp.operations.workers.celery_app import app

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


def test_the_database_password_is_generated_once_and_written_in_both_formats(
    services: dict[str, Any], tmp_path: Path
) -> None:
    def make(**env: str) -> tuple[str, str]:
        script = services["passwords"]["command"][2].replace("$$", "$").replace("/secrets", str(tmp_path))
        subprocess.run(["sh", "-c", script], check=True, env={"PATH": "/usr/bin:/bin", **env})
        return (tmp_path / "postgres_password").read_text(), (tmp_path / "pgpass").read_text()

    password, line = make()
    assert len(password) > 30
    assert line == f"postgres:5432:*:palimpsest:{password}\n"
    assert (tmp_path / "pgpass").stat().st_mode & 0o777 == 0o600  # libpq ignores a file that others can read
    assert make(POSTGRES_PASSWORD="another") == (password, line)
    (tmp_path / "postgres_password").unlink()
    assert make(POSTGRES_PASSWORD=r"own:with\signs") == (
        r"own:with\signs",
        "postgres:5432:*:palimpsest:own\\:with\\\\signs\n",
    )


def test_no_password_has_a_fixed_default() -> None:
    assert not re.search(r"PASSWORD[^\n]*:-[^}$]+}", (ROOT / "docker-compose.yml").read_text())


@pytest.fixture(scope="module")
def composition() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())


def test_everything_that_a_service_refers_to_exists(composition: dict[str, Any]) -> None:
    services = composition["services"]
    for name, service in services.items():
        for other, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert "test" in services[other]["healthcheck"], (name, other)
            else:
                assert services[other]["restart"] == "on-failure", (name, other)
        assert {*service.get("networks", ())} <= {*composition["networks"]}
        mounted = {place.split(":")[0] for place in service.get("volumes", ())}
        assert {place for place in mounted if not place.startswith(".")} <= {*composition["volumes"]}
        assert all((ROOT / place).exists() for place in mounted if place.startswith("."))


def test_service_dependencies_have_no_cycle(services: dict[str, Any]) -> None:
    def waits_for(name: str, above: tuple[str, ...] = ()) -> None:
        assert name not in above
        for other in services[name].get("depends_on", {}):
            waits_for(other, (*above, name))

    for name in services:
        waits_for(name)


def test_only_the_proxy_and_the_web_process_share_a_network(services: dict[str, Any]) -> None:
    reached = {name for name, service in services.items() if "proxy" in service.get("networks", ())}
    assert reached == {"proxy", "web"}
    for name in ("postgres", "redis"):
        assert services[name]["networks"] == ["inside"]


def test_the_commands_of_our_services_exist(services: dict[str, Any]) -> None:
    for name in OURS:
        match services[name]["command"]:
            case ["python", "manage.py", command]:
                assert command in get_commands(), name
            case ["celery", "-A", "chatapp", "worker" | "beat", *_]:
                assert app.main == "chatapp"
            case other:
                pytest.fail(f"{name}: {other}")


@contextmanager
def answering(status: int) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/readyz" else 404)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("status", "is_healthy"), [(200, True), (503, False), (404, False)])
def test_the_health_check_of_the_web_process_follows_readyz(
    services: dict[str, Any], status: int, is_healthy: bool
) -> None:
    kind, python, option, script = services["web"]["healthcheck"]["test"]
    assert (kind, python, option) == ("CMD", "python", "-c")
    with answering(status) as port:
        done = subprocess.run(
            [sys.executable, "-c", script.replace(":8000/", f":{port}/")], capture_output=True, check=False
        )
    assert (done.returncode == 0) is is_healthy, done.stderr


def patterns(name: str) -> set[str]:
    lines = (ROOT / name).read_text().splitlines()
    return {line.strip("/") for line in lines if line and not line.startswith("#")}


def test_files_that_git_ignores_stay_out_of_the_image() -> None:
    kept_out = patterns(".dockerignore")
    for ignored in patterns(".gitignore"):
        assert any(fnmatch(ignored, out) or out.endswith(f"/{ignored}") for out in kept_out), ignored


@pytest.mark.parametrize("name", [".gitignore", ".dockerignore"])
def test_a_backup_made_as_documented_stays_out_of_git_and_the_image(name: str) -> None:
    """Any account that can run the image can read its files."""
    page = (ROOT / "docs" / "operations.md").read_text()
    [folder] = re.findall(r'"\$PWD/(\w+):', page)
    [file, *_] = re.findall(r"^manage\.py backup (\S+)", page, re.MULTILINE)
    for written in (folder, file):
        assert any(fnmatch(written, pattern) for pattern in patterns(name)), written


def test_the_default_public_url_has_the_port_of_the_proxy(services: dict[str, Any]) -> None:
    port = services["proxy"]["ports"][0].removesuffix(":8080")
    assert services["web"]["environment"]["PUBLIC_URL"] == f"${{PUBLIC_URL:-http://localhost:{port}}}"


def test_the_proxy_does_not_limit_the_size_of_a_request() -> None:
    assert "request_body" not in (ROOT / "docs" / "Caddyfile").read_text()


def test_the_health_check_of_the_proxy_works_with_a_domain_instead_of_a_port(
    services: dict[str, Any],
) -> None:
    sites = re.findall(r"^(\S+) \{$", (ROOT / "docs" / "Caddyfile").read_text(), re.MULTILINE)
    checked = services["proxy"]["healthcheck"]["test"][-1].removesuffix("/healthz")
    assert checked in sites
    assert ":8080" in sites
    assert not checked.endswith(":8080")
