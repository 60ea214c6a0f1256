"""Only the account of the service can access stored files, even on a shared machine."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from chatapp.operations.storage.private_files import close_exposed, find_foreign
from tests.environment import ROOT
from tests.fixtures.processes import ServiceStarter
from tests.servers.made_once import copy_migrated_sqlite
from tests.servers.people import ALICE
from tests.servers.service import Service, run_manage

NOBODY = 65534


@pytest.fixture(scope="module", autouse=True)
def open_umask() -> Iterator[None]:
    """Set a umask of 0, which child processes inherit."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture(scope="module")
def used(open_umask: None, start_shared: ServiceStarter) -> Service:
    """Return a service that has stored a file and an answer."""
    service = start_shared()
    client = service.client_of(ALICE)
    note = {"file": ("note.txt", b"The boiler is old.", "text/plain")}
    assert client.post("/api/v1/files", files=note).status_code < 300
    made = client.post("/api/v1/conversations", json={}).json()["id"]
    sent = client.post(f"/api/v1/conversations/{made}/messages", json={"content": "Hello"})
    assert sent.status_code == 200
    return service


def open_paths(folder: Path) -> list[str]:
    """Return the relative paths that other accounts have any permission for, except symbolic links."""
    return sorted(
        str(path.relative_to(folder))
        for path in [folder, *folder.rglob("*")]
        if not path.is_symlink() and path.lstat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    )


def test_only_the_account_of_the_service_can_access_stored_files(used: Service) -> None:
    names = {path.name for path in used.data_dir.rglob("*")}
    assert {"palimpsest.sqlite3", "palimpsest.sqlite3-wal", "palimpsest.sqlite3-shm"} <= names
    assert {"secret_key", "serve.lock"} <= names
    assert any(name.startswith("beat-schedule") for name in names)
    assert any((used.data_dir / "files").rglob("*"))
    assert open_paths(used.data_dir) == []


def test_every_file_in_a_used_data_folder_is_known(used: Service, settings: Settings) -> None:
    """A new file in the data folder must be listed in WRITTEN, or it stays readable in a folder that others share."""
    settings.DATA_DIR = used.data_dir
    assert find_foreign() is None


def test_a_new_data_folder_is_private_from_the_first_command_on(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    done = run_manage({"DATA_DIR": str(folder)}, "migrate", "contenttypes", "--verbosity=0", is_forked=False)
    assert done.returncode == 0, done.stderr
    assert (folder / "palimpsest.sqlite3").exists()
    assert open_paths(folder) == []


def test_an_open_data_folder_is_reported_by_the_doctor_and_closed_at_the_start(
    used: Service, tmp_path: Path
) -> None:
    used.stop()
    printed = len(used.output())
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "of-somebody-else").write_text("x")
    old = used.data_dir / "memory" / "old"
    old.mkdir(parents=True)
    (old / "2026-01-01.md").write_text("A diary.")
    (old / "elsewhere").symlink_to(outside)
    for path in (*used.data_dir.rglob("*"), used.data_dir, outside, *outside.iterdir()):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    examined = run_manage(used.env, "doctor")
    assert "FAILED file permissions" in examined.stdout
    assert examined.returncode == 1
    used.start()
    assert open_paths(used.data_dir) == []
    assert "were open to other accounts" in used.output()[printed:]
    assert (outside / "of-somebody-else").stat().st_mode & 0o777 == 0o644, "links are not followed"
    assert outside.stat().st_mode & 0o777 == 0o755
    assert "ok     file permissions" in run_manage(used.env, "doctor").stdout


def test_foreign_files_in_the_data_folder_keep_their_permissions(used: Service, tmp_path: Path) -> None:
    """DATA_DIR may be a home folder, in which programs must stay executable and shared files shared."""
    used.stop()
    folder = used.data_dir
    (folder / "bin").mkdir()
    program, own = folder / "bin" / "program", folder / "files" / "old"
    for path in (program, own):
        path.write_text("x")
        path.chmod(0o755)
    folder.chmod(0o755)
    used.start()
    assert program.stat().st_mode & 0o777 == folder.stat().st_mode & 0o777 == 0o755
    assert own.stat().st_mode & 0o777 == 0o700, "the account itself keeps its rights"
    doctor = run_manage(used.env, "doctor").stdout
    assert "other things are in it, such as bin" in doctor
    assert "ok     file permissions" in doctor
    (folder / "bin").rename(tmp_path / "bin")
    assert open_paths(folder) == ["."]
    folder.chmod(0o700)  # Restore it for the other tests.


def test_a_file_of_another_account_is_reported_on_one_line_and_left_unchanged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    foreign = Path("/etc/passwd")
    if os.geteuid() == 0:
        foreign = tmp_path / "foreign.txt"
        foreign.write_text("x")
        os.chown(foreign, NOBODY, NOBODY)
    mode = foreign.stat().st_mode
    close_exposed([foreign, tmp_path / "gone"])
    [told] = [record.getMessage() for record in caplog.records]
    assert told.endswith(f"belong to other accounts or cannot be closed to them, such as {foreign}.")
    assert foreign.stat().st_mode == mode


def test_a_database_outside_the_data_folder_is_made_private_too(
    start_service: ServiceStarter, tmp_path: Path
) -> None:
    database = tmp_path / "elsewhere.sqlite3"
    url = f"sqlite:///{database}"
    copy_migrated_sqlite(database)
    database.chmod(0o644)
    service = start_service(is_new=True, DATABASE_URL=url)
    assert database.stat().st_mode & 0o777 == 0o600
    for ending in ("-wal", "-shm"):
        assert Path(f"{database}{ending}").stat().st_mode & 0o777 == 0o600
    assert service.is_ready()


def test_a_celery_process_creates_private_files(tmp_path: Path) -> None:
    """Workers and beat are started with Celery's own command, not with ours."""
    program = "import os, chatapp.operations.workers.celery_app as c; c.app.conf.beat_schedule; print(oct(os.umask(0)))"
    env = {**os.environ, "DATA_DIR": str(tmp_path / "data")}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "0o77"


def test_collected_static_files_stay_readable(tmp_path: Path) -> None:
    """Static files are public, and another account may serve them."""
    static = tmp_path / "static"
    env = {"DATA_DIR": str(tmp_path / "data"), "STATIC_ROOT": str(static)}
    done = run_manage(env, "collectstatic", "--noinput", "--verbosity=0", is_forked=False)
    assert done.returncode == 0, done.stderr
    folders = [path for path in (static, *static.rglob("*")) if path.is_dir()]
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o755}
    assert {path.stat().st_mode & 0o777 for path in static.rglob("*") if path.is_file()} == {0o644}
