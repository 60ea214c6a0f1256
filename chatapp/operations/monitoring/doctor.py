"""The checks of `manage.py doctor`. Each reports that a part works, or how to repair it."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings
from django.db import DatabaseError, connection
from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError

from agents.chat_models.openai_client import embed_texts
from agents.errors import ModelError
from chatapp.context.policies import rules_for
from chatapp.context.tools.registry import unknown_default_tools
from chatapp.files.object_store import failures
from chatapp.files.offloads import probe_store
from chatapp.operations.configuration.changeable_settings import current, has_mail, mail_sender
from chatapp.operations.configuration.environment import LOOPBACK_HOSTS
from chatapp.operations.database.schema_version import ask_version, compare_schema
from chatapp.operations.storage.private_files import find_exposed, find_foreign, stored_paths
from chatapp.operations.workers.celery_app import app
from chatapp.operations.workers.process_reports import ended_threads, living
from chatapp.providers.model_check import check_model
from chatapp.providers.selectors import models_by_preference
from chatapp.recall.embedding import endpoint
from chatapp.recall.embedding_check import count_cost, unknown_languages

LAYER_TIMEOUT_S = 5.0
BROKER_TIMEOUT_S = 5
PING_TIMEOUT_S = 1.5
MAX_CLOCK_DIFFERENCE_S = 5.0
LOW_DISK_BYTES = 500 * 2**20
CLOSE_FILES = "Restart `manage.py serve`, which closes what its account owns; give it the rest with chown."
RESTART = "Restart `manage.py serve`; its log says why."
PROBLEMS = (DatabaseError, BrokerError, RedisError, OSError, ImportError)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Finding:
    part: str
    is_well: bool
    what: str
    remedy: str = ""
    is_used: bool = True
    """False if the service does not use this part."""


def check_database() -> Finding:
    return Finding("database", True, f"{connection.display_name} {ask_version()}")


def check_schema() -> Finding:
    schema = compare_schema()
    if schema == "newer":
        return Finding("schema", False, "newer than this program", "Install the newer version again.")
    if schema == "older":
        return Finding("schema", False, "older than this program", "Run `manage.py migrate`.")
    return Finding("schema", True, "up to date")


def check_layer() -> Finding:
    started = time.monotonic()
    async_to_sync(send_to_itself)()
    what = "in memory" if settings.EMBEDDED else "Redis"
    return Finding(
        "channel layer", True, f"{what}, round trip in {(time.monotonic() - started) * 1000:.0f} ms"
    )


async def send_to_itself() -> None:
    layer = get_channel_layer()
    assert layer is not None
    channel = await layer.new_channel()
    async with asyncio.timeout(LAYER_TIMEOUT_S):
        # Send repeatedly, because the subscription may take effect with a delay.
        receiving = asyncio.ensure_future(layer.receive(channel))
        while not receiving.done():
            await layer.send(channel, {"type": "doctor"})
            await asyncio.wait([receiving], timeout=0.1)


def check_broker() -> Finding:
    if settings.EMBEDDED:
        if "worker" in ended_threads():
            return Finding("broker", False, "in memory, and the worker of this process ended", RESTART)
        return Finding("broker", True, "in memory; `manage.py serve` runs its tasks itself")
    with app.connection_for_write() as broker:
        # Without a limit, kombu retries forever.
        broker.ensure_connection(max_retries=1, interval_start=0, timeout=BROKER_TIMEOUT_S)
    workers = app.control.ping(timeout=PING_TIMEOUT_S)
    if not workers:
        remedy = "Start one: `celery -A chatapp worker`. Summaries and daily files wait until then."
        return Finding("broker", False, "Redis answers, but no worker does", remedy)
    return Finding("broker", True, f"Redis, {len(workers)} worker{'s' if len(workers) > 1 else ''}")


def check_beat() -> Finding:
    """Check the beat, which sends periodic tasks, among them the sweep that finds lost work."""
    if settings.EMBEDDED:
        if "beat" in ended_threads():
            return Finding("beat", False, "the one in this process ended", RESTART)
        return Finding("beat", True, "in `manage.py serve`")
    if not living()["beat"]:
        remedy = "Start one: `celery -A chatapp beat`. Clean-up and lost work wait until then."
        return Finding("beat", False, f"none has reported within {settings.LEASE_S} s", remedy)
    return Finding("beat", True, "sends the periodic tasks")


def check_data_folder() -> Finding:
    folder: Path = settings.DATA_DIR
    probe = folder / f".doctor-{os.getpid()}"
    probe.write_bytes(b"written")
    # A process in another container that shares the folder may have the same id, and so the same probe.
    probe.unlink(missing_ok=True)
    free = shutil.disk_usage(folder).free
    if free < LOW_DISK_BYTES:
        return Finding("data folder", False, f"{folder}: {free // 2**20} MiB free", "Make room on that disk.")
    what = f"{folder}: writable, {free // 2**30} GiB free"
    if foreign := find_foreign():
        what = f"{folder}: writable, but other things are in it, such as {foreign.name}, which keep their permissions"
    return Finding("data folder", True, what)


def check_privacy() -> Finding:
    exposed = list(find_exposed(stored_paths()))
    if exposed:
        what = f"{len(exposed)} files and folders can be read by other accounts, such as {exposed[0].path}"
        return Finding("file permissions", False, what, CLOSE_FILES)
    return Finding("file permissions", True, "only this account can read the data")


def check_clock() -> Finding:
    """Compare the clocks: leases use the clock of each process, so machines that differ take runs from each other."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT strftime('%s', 'now')"
            if connection.vendor == "sqlite"
            else "SELECT extract(epoch FROM now())"
        )
        (database_time,) = cursor.fetchone()
    difference_s = abs(datetime.now(UTC).timestamp() - float(database_time))
    if difference_s > MAX_CLOCK_DIFFERENCE_S:
        remedy = "Let both machines keep network time (NTP)."
        return Finding("clock", False, f"{difference_s:.0f} s apart from the database's", remedy)
    return Finding("clock", True, "agrees with the database's")


def check_models() -> Iterator[Finding]:
    models = list(models_by_preference().filter(enabled=True))
    if not models:
        what = "none yet; the first start of `manage.py serve` makes one"
        yield Finding("model", True, what, is_used=False)
    for config in models:
        checked = check_model(config, lambda row: rules_for(row).resolved)
        remedy = "Correct its address, key or name in the admin panel, under Models, or switch it off there."
        yield Finding(f"model {config.name}", checked.is_working, checked.text, remedy)


def check_embeddings() -> Iterator[Finding]:
    """Yield whether embeddings work, and what they cost or would cost. Without them, recall uses words only."""
    configured = endpoint()
    if configured is None:
        what = f"none, recall uses words only; {count_cost()} (EMBEDDINGS_MODEL)"
        yield Finding("embeddings", True, what, is_used=False)
        return
    part = f"embeddings {configured.model_id}"
    try:
        (vector,) = embed_texts(configured, ["doctor"])
        unknown = unknown_languages(configured)
    except ModelError as error:
        remedy = "Check EMBEDDINGS_BASE_URL, EMBEDDINGS_MODEL and EMBEDDINGS_API_KEY. Meanwhile recall uses words only."
        yield Finding(part, False, str(error), remedy)
    else:
        yield Finding(part, True, f"answers, {len(vector)} dimensions; {count_cost(len(vector))}")
        if unknown:
            what = f"cannot distinguish answers from unrelated sentences in {', '.join(unknown)}"
            yield Finding(part, True, f"{what}; a multilingual model could")


def check_tools() -> Finding:
    unknown = unknown_default_tools()
    if unknown:
        what = f"DEFAULT_TOOLS contains unknown tools: {', '.join(unknown)}"
        log.warning(what)
        return Finding("tools", False, what, "Correct DEFAULT_TOOLS, or name their objects in EXTRA_TOOLS.")
    return Finding("tools", True, f"{len(current('DEFAULT_TOOLS'))} by default")


def check_bucket() -> Iterator[Finding]:
    """Yield nothing if offloaded results are stored in the data folder."""
    if not settings.S3_BUCKET:
        return
    part = f"bucket {settings.S3_BUCKET}"
    try:
        probe_store()
    except failures() as error:
        remedy = "Check S3_BUCKET, S3_ENDPOINT_URL and its keys: they have to write, read, list and delete."
        yield Finding(part, False, str(error).strip().split("\n")[0], remedy)
    else:
        yield Finding(part, True, "written, read and deleted")


def check_mail() -> Finding:
    if not has_mail():
        what = "not set up: nobody can reset a password by mail (EMAIL_URL)"
        return Finding("mail", True, what, is_used=False)
    return Finding("mail", True, f"sent from {mail_sender()}")


def check_address() -> Finding:
    address = urlsplit(settings.PUBLIC_URL)
    if address.scheme == "https":
        return Finding("HTTPS", True, settings.PUBLIC_URL)
    if address.hostname and address.hostname not in {host.strip("[]") for host in LOOPBACK_HOSTS}:
        remedy = (
            "Put a proxy with TLS before it (docs/Caddyfile), and set PUBLIC_URL to its https:// address."
        )
        return Finding("HTTPS", False, f"{settings.PUBLIC_URL}: passwords travel unencrypted", remedy)
    what = (
        "not known: set PUBLIC_URL"
        if settings.IS_BEHIND_PROXY and not address.hostname
        else "not needed: only this machine is served"
    )
    return Finding("HTTPS", True, what, is_used=False)


def check_sign_up() -> Finding:
    told = {"open": "open: anybody makes an account", "invite": "by invitation", "closed": "closed"}
    return Finding("sign-up", True, told[current("SIGNUP")])


OTHERS: dict[Callable[[], Finding], tuple[str, str]] = {
    check_layer: ("channel layer", "Check REDIS_URL, and that Redis runs."),
    check_broker: ("broker", "Check REDIS_URL, and that Redis runs."),
    check_beat: ("beat", "Check REDIS_URL, and that Redis runs."),
    check_privacy: ("file permissions", CLOSE_FILES),
    check_data_folder: ("data folder", "Make it writable for this user, or set DATA_DIR to one that is."),
}


def examine(*, asks_models: bool = True) -> Iterator[Finding]:
    """Yield a finding for each part. Skip checks that need the database if it is unavailable or its schema differs.

    `asks_models` calls each model once and stores the result.
    """
    remedy = "Check DATABASE_URL, and that the server runs and accepts the connection."
    database = examine_part(check_database, "database", remedy)
    yield database
    if database.is_well:
        schema = examine_part(check_schema, "schema", remedy)
        yield schema
        yield examine_part(check_clock, "clock", remedy)
        yield from _examine_stored(asks_models=asks_models) if schema.is_well else ()
    yield check_address()
    yield from check_bucket()
    for check, (part, remedy) in OTHERS.items():
        yield examine_part(check, part, remedy)


def _examine_stored(*, asks_models: bool) -> Iterator[Finding]:
    """Yield a finding for each part whose check reads rows of this program's schema."""
    yield check_mail()
    yield check_sign_up()
    yield examine_part(check_tools, "tools", "Correct EXTRA_TOOLS: dotted names of Python objects.")
    if asks_models:
        yield from check_models()
        # Also without embeddings, because their cost is estimated from rows.
        yield from check_embeddings()


def examine_part(check: Callable[[], Finding], part: str, remedy: str) -> Finding:
    try:
        return check()
    except PROBLEMS as error:
        return Finding(part, False, str(error).strip() or type(error).__name__, remedy)
