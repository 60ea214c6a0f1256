"""Reads the process environment into typed values, for `settings` only.

An invalid value is noted as a problem and replaced by the default, so that one start reports all problems:
`refuse_wrong_values` then ends the process.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import tempfile
from collections.abc import Callable, Collection
from contextvars import ContextVar
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")

HIDDEN = "(set, not shown)"
TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
REDIS_ADDRESS = r"redis://[^/?]*(/[0-9]*)?|rediss://[^/?]*(/[0-9]*)?(\?ssl_.*)?"
"""Celery fails on unix://, on a database that is not a number, and on options other than those of TLS."""
DEFAULT_PORTS = {"http": 80, "https": 443}
LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
FALSE_WORDS = frozenset({"0", "false", "no", "off"})
MAX_LINE_CHARS = 2_000
MAX_SHOWN_CHARS = 100
DOTTED_NAME = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+"
DOTENV = Path(__file__).resolve().parents[3] / ".env"
"""The default file, in the checkout. ENV_FILE names another."""
HOST_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?"
_HOST_OR_ADDRESS = rf"{HOST_NAME}|\[?[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%\w+)?\]?"

problems: list[str] = []
"""One line for each invalid value."""


shown: dict[str, str] = {}
"""The values that the settings have read, by name. Secrets are HIDDEN, but addresses may contain a password."""
_from_file: set[str] = set()
"""Names that the `.env` file set."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """A value to validate as if a variable had it."""

    name: str
    raw: str
    problems: list[str] = field(default_factory=list)


# A context variable, so that other threads still read the real environment.
_trial: ContextVar[_Trial | None] = ContextVar("trial", default=None)


def read_as(name: str, raw: str, read: Callable[[], T]) -> T:
    """Return the result of `read` as if the variable were `raw`. Raise ValueError with a sentence for the user."""
    trial = _Trial(name, raw)
    token = _trial.set(trial)
    try:
        value = read()
    finally:
        _trial.reset(token)
    if trial.problems:
        raise ValueError(" ".join(trial.problems))
    return value


def source_of(name: str) -> str:
    """Return the place where the variable is set, in words; empty if it is not set."""
    if not os.environ.get(name, "").strip():
        return ""
    return "the .env file" if name in _from_file else "the environment"


def refuse(name: str, sentence: str) -> None:
    trial = _trial.get()
    (problems if trial is None else trial.problems).append(f"{name} {sentence}")


def refuse_wrong_values() -> None:
    """End the process with one line for each invalid value, if there are any."""
    if problems:
        raise SystemExit("\n".join(problems))


def _refuse_value(name: str, raw: str, allowed: str) -> None:
    shown = raw if len(raw) <= MAX_SHOWN_CHARS else f"{raw[:MAX_SHOWN_CHARS]}…"
    refuse(name, f"must be {allowed}, not {shown!r}.")


def text(name: str, default: str = "") -> str:
    trial = _trial.get()
    shown.setdefault(name, os.environ.get(name, "").strip() or default)
    raw = trial.raw if trial is not None and trial.name == name else os.environ.get(name, "")
    return raw.strip() or default


def line(name: str, default: str = "") -> str:
    """Return one line of printable characters."""
    raw = text(name, default)
    if len(raw) > MAX_LINE_CHARS or not raw.isprintable():
        _refuse_value(name, raw, f"at most {MAX_LINE_CHARS:,} printable characters")
        return default
    return raw


def secret(name: str) -> str:
    """Return printable ASCII without spaces, which fits in a header. Never show the value."""
    raw = text(name)
    shown[name] = HIDDEN if raw else ""
    if len(raw) > MAX_LINE_CHARS or not re.fullmatch(r"[!-~]*", raw):
        refuse(
            name, f"must be at most {MAX_LINE_CHARS:,} characters of ASCII without spaces (it is not shown)."
        )
        return ""
    return raw


def number(name: str, default: int, least: int, most: int) -> int:
    raw = text(name)
    if not raw:
        return default
    try:
        value = int(raw.replace("_", ""))
    except ValueError:
        # Out of bounds, and thus refused below.
        value = least - 1
    if not least <= value <= most:
        _refuse_value(name, raw, f"a whole number from {least:,} to {most:,}")
        return default
    return value


def flag(name: str, default: bool) -> bool:
    raw = text(name).lower()
    if raw and raw not in TRUE_WORDS | FALSE_WORDS:
        _refuse_value(name, raw, "true, yes, on or 1, or else false, no, off or 0")
        return default
    return raw in TRUE_WORDS if raw else default


def choice(name: str, default: str, allowed: Collection[str]) -> str:
    """Return one of `allowed`, matched regardless of case."""
    raw = text(name, default)
    known = {word.lower(): word for word in allowed}
    if raw.lower() not in known:
        _refuse_value(name, raw, f"one of {', '.join(allowed)}")
        return default
    return known[raw.lower()]


def words(name: str, default: str = "", *, pattern: str = "[!-~]+", kind: str = "names") -> list[str]:
    """Return words separated by commas or spaces. Each must match the whole `pattern`."""
    given = [word for word in text(name, default).replace(",", " ").split() if word]
    wrong = [word for word in given if not re.fullmatch(pattern, word)]
    for word in wrong:
        _refuse_value(name, word, f"a list of {kind}")
    return [] if wrong else given


def tool_names(name: str, default: str) -> list[str]:
    return words(name, default, pattern=r"[A-Za-z0-9_-]{1,64}", kind="names of tools")


def dotted_names(name: str) -> list[str]:
    return words(name, pattern=DOTTED_NAME, kind="dotted names of Python objects")


def dotted_name(name: str, default: str) -> str:
    raw = text(name, default)
    if not re.fullmatch(DOTTED_NAME, raw):
        _refuse_value(name, raw, "the dotted name of a Python object")
        return default
    return raw


def allowed_hosts(name: str, default: str) -> list[str]:
    """Return hosts in Django's format: without scheme and port."""
    kind = "host names such as chat.example.com, without scheme and port"
    return words(name, default, pattern=rf"\*|\.?(?:{HOST_NAME})|\[[0-9A-Fa-f:.]+\]", kind=kind)


def host_rules(name: str, default: str = "") -> list[str]:
    """Return hosts in the format of `agents.guarded_http`. "none" allows no host."""
    kind = "hosts such as docs.python.org, *.python.org, * or wiki.example:8080"
    return words(
        name,
        default,
        pattern=rf"(?:\*|(?:\*\.)?(?:{HOST_NAME})|\[[0-9A-Fa-f:.]+\])(?::\d{{1,5}})?",
        kind=kind,
    )


def networks(name: str) -> list[str]:
    given = words(name)
    for word in given:
        try:
            ip_network(word, strict=False)
        except ValueError:
            _refuse_value(name, word, "a list of addresses or networks such as 10.0.0.0/8")
            return []
    return given


def host(name: str, default: str) -> str:
    raw = text(name, default)
    if not re.fullmatch(_HOST_OR_ADDRESS, raw):
        _refuse_value(name, raw, "a host name or an address such as 127.0.0.1")
        return default
    return raw


def url(name: str, default: str = "") -> str:
    """Return an http or https address without a trailing slash. Errors do not show a password in it."""
    raw = text(name, default).rstrip("/")
    if not raw:
        return ""
    if not is_address(raw, tuple(DEFAULT_PORTS)):
        refuse(name, f"must be an address such as https://host.example/v1, not {without_password(raw)!r}.")
        return default
    return raw


def origin(name: str) -> str:
    """Return an http or https origin as browsers send it: in lower case, without a path and without a default port."""
    raw = text(name).rstrip("/")
    if not raw:
        return ""
    parts = urlsplit(raw) if is_address(raw, tuple(DEFAULT_PORTS)) else None
    if parts is None or parts.path or parts.query or "@" in parts.netloc:
        example = "an address such as https://host.example, without a path"
        refuse(name, f"must be {example}, not {without_password(raw)!r}.")
        return ""
    host = parts.hostname or ""
    port = f":{parts.port}" if parts.port not in (None, DEFAULT_PORTS[parts.scheme]) else ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}"


def redis_url(name: str) -> str:
    """Return an address that redis-py and Celery parse identically."""
    raw = text(name)
    if raw and not (is_address(raw, ("redis", "rediss")) and re.fullmatch(REDIS_ADDRESS, raw)):
        refuse(name, f"must be an address such as redis://host:6379/0, not {without_password(raw)!r}.")
        return ""
    return raw


def is_address(raw: str, schemes: Collection[str]) -> bool:
    try:
        parts = urlsplit(raw)
        has_port = parts.port is None or parts.port > 0  # raises ValueError beyond 65,535
    except ValueError:
        return False
    is_plain = raw.isprintable() and " " not in raw and len(raw) <= MAX_LINE_CHARS
    named = re.fullmatch(_HOST_OR_ADDRESS, parts.hostname or "")
    return bool(is_plain and has_port and parts.scheme in schemes and named and not parts.fragment)


def database(name: str, default: str, parse: Callable[[str], Any]) -> dict[str, Any]:
    """Return the parsed address, or the default if it names neither an SQLite file nor a PostgreSQL database."""
    raw = text(name, default)
    try:
        found = dict(parse(raw))
    except (ValueError, KeyError):
        found = {}
    is_ours = found.get("ENGINE", "").rpartition(".")[2] in ("sqlite3", "postgresql")
    # The database may also be named in a service of PostgreSQL's own configuration.
    is_named = bool(found.get("NAME") or found.get("OPTIONS", {}).get("service"))
    # Other connections cannot see a database in SQLite's memory.
    if not is_ours or not is_named or ":memory:" in found["NAME"]:
        example = "postgresql://user:password@host/database or sqlite:////folder/file"
        refuse(name, f"must be an address such as {example}, not {without_password(raw)!r}.")
        return dict(parse(default))
    return found


def without_password(raw: str) -> str:
    """Return the address for display, without user, password and query."""
    # Split at the last @, because a password may contain one that was not encoded.
    _, at, rest = raw.rpartition("@")
    return f"{'…@' if at else ''}{rest.partition('?')[0][:MAX_SHOWN_CHARS]}"


def json_value(name: str, empty: T, check: Callable[[Any], object]) -> T:
    """Return a JSON object if `empty` is one, else a list of objects. `check` raises ValueError for invalid ones."""
    raw = text(name)
    if not raw:
        return empty
    try:
        value: T = json.loads(raw)
    except (ValueError, RecursionError) as error:
        refuse(name, f"is not valid JSON: {error}")
        return empty
    is_list = isinstance(empty, list)
    objects: object = value if is_list else [value]
    if not isinstance(objects, list) or not all(isinstance(each, dict) for each in objects):
        kind = "list of objects" if is_list else 'object, like {"keep_recent": 20}'
        refuse(name, f"must be a JSON {kind}.")
        return empty
    try:
        check(value)
    except ValueError as error:
        refuse(f"{name}:", str(error))
        return empty
    return value


def load_dotenv() -> None:
    """Set the variables in the `NAME=value` lines of ENV_FILE, unless the environment has them.

    Accept `export NAME=value`, as in shells, and a byte order mark, as Windows writes it.
    """
    given = text("ENV_FILE")
    path = Path(given or DOTENV)
    if not given and not path.is_file():
        return
    try:
        content = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        refuse("ENV_FILE", f"names {path}, which cannot be read: {error}")
        return
    for row in content.splitlines():
        written, found, value = row.partition("=")
        name = written.strip().removeprefix("export ").strip()
        if found and name and "\0" not in row and not name.startswith("#"):
            # Variables of the process override the file.
            if name not in os.environ:
                _from_file.add(name)
            os.environ.setdefault(name, value.strip().strip("\"'"))


def create_files_private() -> None:
    """Make this process create folders 0700 and files 0600, whatever its umask was.

    SQLite, Celery's schedule and other libraries accept no mode. The settings call this, because every process,
    including workers and beat, reads them before it creates a file.
    """
    os.umask(0o077)


def writable_folder(name: str, default: Path) -> Path:
    path = Path(text(name, str(default))).resolve()
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".probe-{os.getpid()}"
        probe.touch()
        # Processes in containers that share the folder may have the same id, and so the same probe.
        probe.unlink(missing_ok=True)
    except OSError as error:
        refuse(name, f"must be a folder that can be written, not {path} ({error.strerror}).")
    return path


LEAST_KEY_CHARS = 32
"""SECRET_KEY signs sessions and encrypts the keys of providers."""


def secret_key(path: Path) -> str:
    """Return SECRET_KEY, or else a key that is generated at the first start and kept in the data folder."""
    given = text("SECRET_KEY")
    shown["SECRET_KEY"] = HIDDEN
    if given:
        if len(given) < LEAST_KEY_CHARS:
            refuse("SECRET_KEY", f"must have at least {LEAST_KEY_CHARS} characters (it is not shown).")
        return given
    if problems:  # the folder may be the wrong one
        return ""
    if not path.exists():
        descriptor, draft = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        with open(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(50))
        with contextlib.suppress(FileExistsError):  # another process created it first
            # Unlike a rename, a link does not replace a key that another process has begun to use.
            path.hardlink_to(draft)
        Path(draft).unlink()
    return path.read_text().strip()
