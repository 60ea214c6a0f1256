"""A backup of a running service is restored into an empty deployment, where everything works as before."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import sqlite3
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from chatapp.operations.backups.archive import BackupProblem, write_archive
from chatapp.operations.backups.databases import open_snapshot
from chatapp.operations.backups.services import make_backup
from tests.fixtures.processes import ServiceStarter
from tests.reliability.browsers import BrowserSession
from tests.servers.made_once import MIGRATED, SQLITE_NAME, copy_migrated_sqlite
from tests.servers.people import ALICE, BOB, make_people
from tests.servers.postgres import Postgres
from tests.servers.redis import Redis
from tests.servers.s3 import S3Server
from tests.servers.service import OwnProcess, Service
from tests.servers.service import run_manage as manage
from tests.servers.waiting import wait_for
from tests.upgrade.data_folder import unpack
from tests.upgrade.dump import DUMP, ENTRY, HISTORY, NOTE, PROFILE, SAID, fill, found, send

pytestmark = pytest.mark.slow
BETWEEN_ENTRIES_S = 0.05
"""More entries per day would take longer to write and prove no more."""


@dataclass(frozen=True)
class Made:
    """A service with alice's data, a backup made while it ran, and bob's entries accepted before the backup began."""

    service: Service
    file: Path
    facts: dict[str, Any]
    accepted: list[str]
    cookie: str
    """The cookies of a browser in which alice was signed in when the backup was made."""


@pytest.fixture(scope="module")
def made(start_shared: ServiceStarter, tmp_path_factory: pytest.TempPathFactory) -> Made:
    service = start_shared()
    file = tmp_path_factory.mktemp("backups") / "backup.tar.gz"
    return back_up(service, file)


def back_up(service: Service, file: Path) -> Made:
    facts, cookie = fill(service.client_of(ALICE)), BrowserSession(service, ALICE).cookie
    with somebody_writes(service) as accepted:
        before = list(accepted)
        printed = service.manage("backup", str(file))
    assert "The secret key is in it" in printed
    return Made(service, file, facts, before, cookie)


@contextmanager
def somebody_writes(service: Service) -> Iterator[list[str]]:
    """Let bob keep writing to his memory. Yield the list of the entries accepted so far."""
    accepted: list[str] = []
    is_over = threading.Event()

    def write() -> None:
        with service.client_of(BOB) as bob:
            while not is_over.wait(BETWEEN_ENTRIES_S):
                text = f"The buoy {len(accepted)} is red."
                send(bob, "POST", "memory/entries", json={"text": text, "day": "2026-11-21"})
                accepted.append(text)

    writing = threading.Thread(target=write)
    writing.start()
    try:
        wait_for(lambda: len(accepted) > 2, what="bob writes")
        yield accepted
    finally:
        is_over.set()
        writing.join()


def check_everything(service: Service, made: Made) -> None:
    """Check that all data and the search are as before, alice can sign in with all credentials, and chats continue."""
    alice, facts = service.client_of(ALICE), made.facts
    question, answer = send(alice, "GET", f"conversations/{facts['chat']}/messages")["items"]
    assert (question["content"][-1]["text"], answer["status"]) == (SAID, "complete")
    assert alice.get(f"/api/v1/files/{facts['file']}").content == NOTE
    kept = send(alice, "GET", f"conversations/{facts['long']}/messages")["items"]
    assert [row["content"] for row in kept] == [row["content"] for row in HISTORY]
    [compaction] = send(alice, "GET", f"conversations/{facts['long']}/compactions")["items"]
    assert compaction["summary"] == facts["summary"]
    assert send(alice, "GET", "memory/profile")["markdown"] == PROFILE
    assert found(alice, SAID)
    assert found(alice, ENTRY)
    [*_, id_of_alice] = {path.parent for path in service.data_dir.glob("memory/*/MEMORY.md")}
    assert ENTRY in (id_of_alice / "2026-11-20.md").read_text()

    BrowserSession(service, ALICE)
    with service.client() as browser:
        browser.headers["Cookie"] = made.cookie
        page = browser.get("/c/" + facts["chat"])
        assert page.status_code == 200, page.headers["location"]
    entries = send(service.client_of(BOB), "GET", "memory/days/2026-11-21")["entries"]
    assert {entry["text"] for entry in entries} >= set(made.accepted)

    more = {"content": "And the sails?", "stream": False}
    assert send(alice, "POST", f"conversations/{facts['chat']}/messages", json=more)["message"]["status"] == (
        "complete"
    )


def restored_service(made: Made, env: dict[str, str], processes: list[OwnProcess], folder: Path) -> Service:
    done = manage(env, "restore", str(made.file))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Restored the backup of" in done.stdout
    service = Service([], folder / "restored.log", env, tokens=made.service.tokens, is_forked=True)
    processes.append(service)
    return service.start()


def test_a_backup_of_a_running_service_is_restored(
    made: Made, tmp_path: Path, processes: list[OwnProcess]
) -> None:
    env = {"DATA_DIR": str(tmp_path / "data")}
    check_everything(restored_service(made, env, processes, tmp_path), made)
    assert (tmp_path / "data" / "secret_key").read_text() == (
        made.service.data_dir / "secret_key"
    ).read_text()
    assert not list((tmp_path / "data").glob(".restore*"))


def test_a_backup_is_restored_if_the_folder_of_files_is_a_symbolic_link(made: Made, tmp_path: Path) -> None:
    disk, data = tmp_path / "disk", tmp_path / "data"
    disk.mkdir()
    data.mkdir()
    (data / "files").symlink_to(disk)
    done = manage({"DATA_DIR": str(data)}, "restore", str(made.file))
    assert done.returncode == 0, done.stderr

    def contents(folder: Path) -> list[bytes]:
        kept = sorted(path for path in folder.rglob("[!.]*") if path.is_file())
        return [path.read_bytes() for path in kept]

    assert contents(disk) == contents(made.service.data_dir / "files") != []
    assert (data / "secret_key").read_text() == (made.service.data_dir / "secret_key").read_text()


def test_a_backup_on_postgresql_is_restored(
    start_service: ServiceStarter,
    start_worker: Callable[[Service], OwnProcess],
    postgres: Postgres,
    redis: Redis,
    tmp_path: Path,
    processes: list[OwnProcess],
) -> None:
    service = start_service(production=True)
    people = make_people(service.env, [ALICE, BOB])
    service.tokens, service.cookies = people.tokens, people.cookies
    start_worker(service)
    env = {
        "DATA_DIR": str(tmp_path / "other"),
        "DATABASE_URL": postgres.new_database(MIGRATED),
        "REDIS_URL": redis.new_database(),
    }
    # Tables of another program, one with the prefix of a library's tables.
    for address in (service.env["DATABASE_URL"], env["DATABASE_URL"]):
        with psycopg.connect(address) as database:
            database.execute("CREATE TABLE account_ledger AS SELECT 7 AS entry")
            database.execute("CREATE TABLE shop_order AS SELECT 8 AS entry")
            database.execute(
                "INSERT INTO django_migrations (app, name, applied) VALUES ('shop', '0001', now())"
            )
    made = back_up(service, tmp_path / "backup.tar.gz")
    check_everything(restored_service(made, env, processes, tmp_path), made)
    with psycopg.connect(env["DATABASE_URL"]) as database:
        for table, entry in (("account_ledger", 7), ("shop_order", 8)):
            assert database.execute(f"SELECT entry FROM {table}").fetchall() == [(entry,)]


def test_a_backup_is_readable_only_by_its_owner_and_replaces_no_file(made: Made) -> None:
    assert made.file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in made.file.parent.iterdir()] == [made.file.name]
    before = made.file.read_bytes()
    again = manage(made.service.env, "backup", str(made.file))
    assert again.returncode == 1
    assert "exists already" in again.stderr
    assert made.file.read_bytes() == before


def test_the_first_complete_one_of_two_backups_to_a_file_is_kept(
    transactional_db: None, tmp_path: Path
) -> None:
    file = tmp_path / "backup.tar.gz"

    def back_up_twice() -> None:
        with write_archive(file) as earlier, open_snapshot(file) as snapshot:
            earlier.add_bytes("manifest.json", b"of the earlier one")
            make_backup(file)
            snapshot.write(earlier)

    with pytest.raises(BackupProblem, match="exists already"):
        back_up_twice()
    with tarfile.open(file) as tar:
        [manifest, database, *_] = [(member.name, tar.extractfile(member)) for member in tar]
        assert manifest[1] is not None
        assert json.loads(manifest[1].read())["database"] == "sqlite"
        assert database[0] == f"database/{SQLITE_NAME}"
    assert list(tmp_path.iterdir()) == [file]


def test_a_folder_deleted_while_it_is_listed_does_not_fail_the_backup(
    transactional_db: None, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DATA_DIR = str(tmp_path)
    for conversation in ("kept", "deleted"):
        (tmp_path / "offloads" / conversation).mkdir(parents=True)
        (tmp_path / "offloads" / conversation / "result.txt").write_text("A long result.")
    list_folder = os.scandir

    def delete_then_list(folder: str | Path = ".") -> Any:
        if Path(folder).name == "deleted":
            (Path(folder) / "result.txt").unlink()
            Path(folder).rmdir()
        return list_folder(folder)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(os, "scandir", delete_then_list)
        made = make_backup(tmp_path / "backup.tar.gz")
    assert made.file_count == 1
    with tarfile.open(tmp_path / "backup.tar.gz") as tar:
        assert "data/offloads/kept/result.txt" in tar.getnames()


def test_a_backup_is_not_restored_under_a_running_service_or_over_accounts(
    made: Made, tmp_path: Path
) -> None:
    running = manage(made.service.env, "restore", str(made.file))
    assert (running.returncode, "already served by process" in running.stderr) == (1, True)

    folder = tmp_path / "data"
    folder.mkdir()
    shutil.copy(made.service.data_dir / SQLITE_NAME, folder)
    used = manage({"DATA_DIR": str(folder)}, "restore", str(made.file))
    assert used.returncode == 1
    assert "This database has accounts, and a backup is restored into an empty deployment only" in used.stderr


SHOP = """
CREATE TABLE django_migrations (id integer, app varchar(255), name varchar(255), applied timestamp);
INSERT INTO django_migrations VALUES (1, 'auth', '0001_initial', NULL), (2, 'shop', '0001_initial', NULL);
CREATE TABLE auth_group AS SELECT 1 AS id;
CREATE TABLE shop_order AS SELECT 7 AS entry;
"""


def test_a_database_of_another_program_is_refused_and_kept(
    made: Made, postgres: Postgres, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.sqlite3")) as database:
        database.executescript(SHOP)
    address = postgres.new_database()
    with psycopg.connect(address) as server:
        server.execute(SHOP)
    for url in (f"sqlite:///{tmp_path}/shop.sqlite3", address):
        refused = manage({"DATA_DIR": str(tmp_path / "data"), "DATABASE_URL": url}, "restore", str(made.file))
        assert refused.returncode == 1
        assert "This database has tables of another program" in refused.stderr
    with closing(sqlite3.connect(tmp_path / "shop.sqlite3")) as database:
        assert database.execute("SELECT entry FROM shop_order").fetchall() == [(7,)]
    with psycopg.connect(address) as server:
        assert server.execute("SELECT entry FROM shop_order, auth_group").fetchall() == [(7,)]


def rewritten(made: Made, target: Path, **changes: Any) -> Path:
    """Write a copy of the backup with a changed manifest. Return its path."""
    with tarfile.open(made.file) as tar, tarfile.open(target, "w:gz") as written:
        for member in tar:
            content = tar.extractfile(member)
            assert content is not None
            data = content.read()
            if member.name == "manifest.json":
                data = json.dumps({**json.loads(data), **changes}).encode()
                member.size = len(data)
            written.addfile(member, io.BytesIO(data))
    return target


def cut_off(made: Made, target: Path) -> Path:
    target.write_bytes(made.file.read_bytes()[:-6])
    return target


def leading_out(made: Made, target: Path) -> Path:
    with gzip.open(target, "wb") as packed, tarfile.open(made.file) as tar:
        with tarfile.open(fileobj=packed, mode="w|") as written:
            manifest = tar.getmember("manifest.json")
            written.addfile(manifest, tar.extractfile(manifest))
            written.addfile(tarfile.TarInfo("data/../../escaped"), io.BytesIO())
    return target


def no_archive(made: Made, target: Path) -> Path:
    target.write_text("Dear diary")
    return target


WRONG: dict[str, tuple[Callable[[Made, Path], Path], str]] = {
    "cut off": (cut_off, "is not a backup, or it is damaged or incomplete"),
    "leading out": (leading_out, "is not a backup, or it is damaged or incomplete"),
    "no archive": (no_archive, "is not a backup, or it is damaged or incomplete"),
    "newer format": (lambda made, target: rewritten(made, target, format=2), "made by a newer version"),
    "newer schema": (
        lambda made, target: rewritten(made, target, migrations=[["chatapp", "9999_later"]]),
        "made by a newer version, with chatapp.9999_later",
    ),
    "other database": (
        lambda made, target: rewritten(made, target, database="postgresql"),
        "The backup is of postgresql, and DATABASE_URL points to sqlite",
    ),
}


def test_an_unsuitable_backup_is_refused_before_anything_is_changed(made: Made, tmp_path: Path) -> None:
    env = {"DATA_DIR": str(tmp_path / "data")}
    for name, (make, problem) in WRONG.items():
        wrong = make(made, tmp_path / f"{name}.tar.gz")
        refused = manage(env, "restore", str(wrong))
        assert (refused.returncode, refused.stderr.count("\n")) == (1, 1), refused.stderr
        assert problem in refused.stderr
    left = {path.name for path in (tmp_path / "data").iterdir()}
    assert left == {"secret_key", "serve.lock", SQLITE_NAME}  # Every command creates these.
    with closing(sqlite3.connect(tmp_path / "data" / SQLITE_NAME)) as database:
        assert database.execute("SELECT * FROM sqlite_master").fetchall() == []
    assert not (tmp_path / "escaped").exists()


def test_a_secret_key_from_the_environment_is_not_in_the_backup_and_must_be_the_same(tmp_path: Path) -> None:
    env = {"DATA_DIR": str(tmp_path / "data"), "SECRET_KEY": "one-that-is-kept-elsewhere-" * 3}
    (tmp_path / "data").mkdir()
    copy_migrated_sqlite(tmp_path / "data" / SQLITE_NAME)
    file = tmp_path / "backup.tar.gz"
    printed = manage(env, "backup", str(file)).stdout
    assert "SECRET_KEY comes from the environment and is not in it" in printed
    with tarfile.open(file) as tar:
        assert tar.getnames() == ["manifest.json", f"database/{SQLITE_NAME}"]
    other = {"DATA_DIR": str(tmp_path / "other")}
    refused = manage(other, "restore", str(file))
    assert "set the same one" in refused.stderr
    assert manage(other | {"SECRET_KEY": env["SECRET_KEY"]}, "restore", str(file)).returncode == 0


def test_a_backup_of_an_older_schema_is_migrated(tmp_path: Path) -> None:
    unpack(DUMP.read_text(), tmp_path / "old")
    file, env = tmp_path / "backup.tar.gz", {"DATA_DIR": str(tmp_path / "new")}
    assert manage({"DATA_DIR": str(tmp_path / "old")}, "backup", str(file)).returncode == 0
    restored = manage(env, "restore", str(file))
    assert "1 account," in restored.stdout, restored.stderr
    assert manage(env, "migrate", "--check").returncode == 0
    with closing(sqlite3.connect(tmp_path / "new" / SQLITE_NAME)) as database:
        assert database.execute("SELECT count(*) FROM chatapp_message").fetchone()[0] > len(HISTORY)


def test_a_backup_that_cannot_be_opened_is_reported_with_the_reason(
    tmp_path: Path,
) -> None:
    (tmp_path / "note.txt").write_text("Dear diary")
    for name, why in (
        ("note.txt/backup.tar.gz", "Not a directory"),
        ("x" * 300, "File name too long"),
        (".", "Is a directory"),
        ("none", "No such file or directory"),
    ):
        refused = manage({"DATA_DIR": str(tmp_path / "data")}, "restore", str(tmp_path / name))
        assert refused.stderr == f"CommandError: {tmp_path / name} cannot be read: {why}.\n"


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    server = S3Server().start()
    yield server
    server.stop()


IN_BUCKET = {
    "11111111-1111-1111-1111-111111111111/tool_result-a.txt": b"what a tool found",
    "11111111-1111-1111-1111-111111111111/data/b.png": b"\x89PNG",
    "11111111-1111-1111-1111-111111111111/context.jsonl/0001": b'{"id": "1"}\n',
    "11111111-1111-1111-1111-111111111111/context.jsonl/0002": b'{"id": "2"}\n',
}


def in_bucket(s3: S3Server, name: str, folder: Path) -> dict[str, str]:
    """Return the environment of a deployment that offloads to this bucket."""
    keys = {"S3_ACCESS_KEY_ID": "test", "S3_SECRET_ACCESS_KEY": "test"}
    return {"DATA_DIR": str(folder), "S3_BUCKET": name, "S3_ENDPOINT_URL": s3.url, **keys}


def test_offloads_in_a_bucket_are_restored_to_another_bucket_and_to_a_disk(
    s3: S3Server, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    copy_migrated_sqlite(tmp_path / "data" / SQLITE_NAME)
    env = in_bucket(s3, s3.new_bucket("first"), tmp_path / "data")
    for path, content in IN_BUCKET.items():
        s3.put("first", f"offloads/{path}", content)
    s3.put("first", "somebody-elses/file", b"not ours")
    file = tmp_path / "backup.tar.gz"
    printed = manage(env, "backup", str(file)).stdout
    assert "the database and 3 files" in printed
    assert "The offloaded results in the bucket first are in it." in printed

    conversation = next(iter(IN_BUCKET)).partition("/")[0]
    whole = {
        f"{conversation}/tool_result-a.txt": b"what a tool found",
        f"{conversation}/data/b.png": b"\x89PNG",
        f"{conversation}/context.jsonl": b'{"id": "1"}\n{"id": "2"}\n',
    }
    other = in_bucket(s3, s3.new_bucket("second"), tmp_path / "other")
    done = manage(other, "restore", str(file))
    assert done.returncode == 0, done.stderr
    kept = {key.removeprefix("offloads/"): s3.get("second", key) for key in s3.keys("second")}
    [parts] = [key for key in kept if "context.jsonl" in key]
    assert parts.startswith(f"{conversation}/context.jsonl/")  # a single part, to which others can be added
    kept[f"{conversation}/context.jsonl"] = kept.pop(parts)
    assert kept == whole
    assert not list((tmp_path / "other" / "offloads").rglob("*.txt"))

    again = manage({**other, "DATA_DIR": str(tmp_path / "third")}, "restore", str(file))
    assert (again.returncode, "The bucket has files below offloads" in again.stderr) == (1, True)

    done = manage({"DATA_DIR": str(tmp_path / "disk")}, "restore", str(file))
    assert done.returncode == 0, done.stderr
    offloads = tmp_path / "disk" / "offloads"
    on_disk = {
        path.relative_to(offloads).as_posix(): path.read_bytes()
        for path in offloads.rglob("*")
        if path.is_file()
    }
    assert on_disk == whole


def test_an_unusable_bucket_fails_the_backup(s3: S3Server, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    copy_migrated_sqlite(tmp_path / "data" / SQLITE_NAME)
    env = in_bucket(s3, "never-made", tmp_path / "data")
    refused = manage(env, "backup", str(tmp_path / "backup.tar.gz"))
    assert refused.returncode == 1
    assert "The bucket never-made does not answer" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert not (tmp_path / "backup.tar.gz").exists()
