"""A small data folder as text: its database as SQL and its other files, compressed and in base64."""

from __future__ import annotations

import base64
import gzip
import json
import sqlite3
from pathlib import Path
from typing import Any

DATABASE = "palimpsest.sqlite3"
NOT_KEPT = ("serve.lock", "beat-schedule", DATABASE)


def pack(folder: Path, facts: dict[str, Any]) -> str:
    """Return the folder and `facts` as lines of text."""
    database = sqlite3.connect(folder / DATABASE)
    try:
        sql = "\n".join(database.iterdump())
    finally:
        database.close()
    files = {
        str(path.relative_to(folder)): base64.b64encode(path.read_bytes()).decode()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(NOT_KEPT)
    }
    content = json.dumps({"facts": facts, "sql": sql, "files": files}).encode()
    return base64.encodebytes(gzip.compress(content, mtime=0)).decode()


def unpack(text: str, folder: Path) -> dict[str, Any]:
    """Write the folder and return the facts."""
    content = json.loads(gzip.decompress(base64.b64decode(text)))
    for name, data in content["files"].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(data))
    database = sqlite3.connect(folder / DATABASE)
    try:
        database.executescript(content["sql"])
    finally:
        database.close()
    facts: dict[str, Any] = content["facts"]
    return facts
