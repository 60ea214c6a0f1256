"""Fuzz a running service with schemathesis and compare the responses with the API description: `make fuzz`.

Run all checks and phases as an operator, on SQLite and on PostgreSQL. Repeat each read as charlie, who must not get
the data. python -m tests.api.fuzz [--database sqlite postgres] [--examples 100] [--only WORD]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2

from tests.environment import ROOT, clean_environment
from tests.servers.people import ADMIN, CHARLIE, make_people
from tests.servers.postgres import Postgres
from tests.servers.service import Service, run_manage

SEED = "15"
NOT_ASKED = {
    "streamEvents": "a stream that does not end",
    "deleteMe": "the account itself; its answers to what is not confirmed are in tests/api/test_account.py",
    "deleteToken": "the token that all others are asked with",
}
"""Operations to skip, with the reason."""
LIMITS = {"MESSAGES_PER_MINUTE": "0", "CONNECTIONS_PER_USER": "1000", "TRUSTED_PROXIES": "127.0.0.1"}
CONFIG = """\
hooks = "tests.api.fuzz_hooks"

[auth.wfc]
path = {people}
user = "operator"
peers = ["operator", "charlie"]

[checks.negative_data_rejection]  # too long is 413
expected-statuses = ["400", "401", "403", "404", "405", "406", "409", "413", "415", "422", "428", "429", "5xx"]

[checks.positive_data_acceptance]  # 422 by a rule: tests.api.fuzz_hooks
expected-statuses = ["2xx", "3xx", "401", "403", "404", "409", "422", "429", "5xx"]
"""
ONE_OF_EVERYTHING = """
import json
from chatapp.accounts.models import User
from tests.api.everything import one_of_everything
user = User.objects.get(email={email!r})
print(json.dumps([one_of_everything(user) for _ in range(20)]))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--database", nargs="+", choices=("sqlite", "postgres"), default=("sqlite", "postgres")
    )
    parser.add_argument("--examples", default="100")
    parser.add_argument("--only", help="operations whose id has this in it")
    options, more = parser.parse_known_args()
    clean_environment()
    codes = []
    for database in options.database:
        print(f"== {database}", flush=True)
        with tempfile.TemporaryDirectory(prefix="palimpsest-fuzz-") as folder:
            with running(Path(folder), database) as service:
                codes.append(ask(Path(folder), service, options.examples, options.only, more))
    return max(codes)


@contextmanager
def running(folder: Path, database: str) -> Iterator[Service]:
    """Run the service in one process on a new database, with an operator and charlie."""
    postgres = Postgres().start() if database == "postgres" else None
    environment = {"DATA_DIR": str(folder / "data"), **LIMITS}
    if postgres:
        environment["DATABASE_URL"] = postgres.new_database()
    try:
        done = run_manage(environment, "migrate", "--verbosity=0")
        assert done.returncode == 0, done.stdout + done.stderr
        service = Service([], folder / "service.log", environment)
        service.tokens = make_people(environment, (ADMIN, CHARLIE)).tokens
        make_things(folder, environment)
        service.start()
        try:
            yield service
        finally:
            service.stop()
    finally:
        if postgres:
            postgres.stop()


def make_things(folder: Path, environment: dict[str, str]) -> None:
    """Create rows of every kind and write their ids to ids.json."""
    made = run_manage(environment, "shell", "-v", "0", "-c", ONE_OF_EVERYTHING.format(email=ADMIN))
    assert made.returncode == 0, made.stdout + made.stderr
    (folder / "ids.json").write_text(made.stdout.splitlines()[-1])


def ask(
    folder: Path, service: Service, examples: str, only: str | None = None, more: Sequence[str] = ()
) -> int:
    """Return the exit code of schemathesis, which prints what it finds."""
    people, config = folder / "people.json", folder / "schemathesis.toml"
    entries = [
        bearer(name, service.tokens[email]) for name, email in (("operator", ADMIN), ("charlie", CHARLIE))
    ]
    people.write_text(json.dumps({"auth": entries}))
    config.write_text(CONFIG.format(people=json.dumps(str(people))))
    httpx2.get(
        f"{service.url}/api/v1/openapi.json", timeout=120
    ).raise_for_status()  # the first request builds the description
    command = [str(Path(sys.executable).parent / "schemathesis"), f"--config-file={config}", "run"]
    command += [
        f"{service.url}/api/v1/openapi.json",
        "--checks=all",
        f"--max-examples={examples}",
        f"--seed={SEED}",
    ]
    command += ["--generation-database=none", "--suppress-health-check=all", "--request-timeout=60"]
    command += ["--continue-on-failure", "--max-response-time=600"]  # a slow machine is not a finding
    command += [f"--exclude-operation-id={name}" for name in NOT_ASKED]
    command += [f"--include-operation-id-regex={only}"] if only else []
    env = {**os.environ, "PYTHONPATH": str(ROOT), "FUZZ_IDS": str(folder / "ids.json")}
    return subprocess.run([*command, *more], check=False, cwd=folder, env=env).returncode


def bearer(name: str, token: str) -> dict[str, object]:
    return {"name": name, "fixedHeaders": [{"name": "Authorization", "value": f"Bearer {token}"}]}


if __name__ == "__main__":
    raise SystemExit(main())
