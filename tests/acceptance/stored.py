"""Searches all stored data for a word: all columns of all tables, all bytes of all files, and all of Redis."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from redis import Redis


def places_with(word: str, env: dict[str, str]) -> list[str]:
    """Return the table columns, files and Redis keys that contain the word, ignoring case."""
    wanted = word.lower().encode()
    values = [*_database(env), *_files(Path(env["DATA_DIR"])), *_redis(env.get("REDIS_URL", ""))]
    return sorted({place for place, value in values if wanted in _bytes(value).lower()})


def _bytes(value: Any) -> bytes:
    return bytes(value) if isinstance(value, (bytes, memoryview)) else str(value).encode()


def _database(env: dict[str, str]) -> Iterator[tuple[str, Any]]:
    if "DATABASE_URL" in env:
        yield from _postgres(env["DATABASE_URL"])
    else:
        yield from _sqlite(Path(env["DATA_DIR"]) / "palimpsest.sqlite3")


def _sqlite(path: Path) -> Iterator[tuple[str, Any]]:
    with sqlite3.connect(path) as database:
        names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in names:
            rows = database.execute(f'SELECT * FROM "{table}"')
            columns = [column[0] for column in rows.description]
            for row in rows:
                yield from ((f"{table}.{name}", value) for name, value in zip(columns, row, strict=True))
    database.close()


def _postgres(url: str) -> Iterator[tuple[str, Any]]:
    with psycopg.connect(url) as connection:
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        for (table,) in names:
            rows = connection.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(table)))
            columns = [column.name for column in rows.description or ()]
            for row in rows:
                yield from ((f"{table}.{name}", value) for name, value in zip(columns, row, strict=True))


def _files(folder: Path) -> Iterator[tuple[str, Any]]:
    """Include SQLite's own files, which may hold overwritten values and a journal."""
    for path in folder.rglob("*"):
        if path.is_file():
            yield str(path.relative_to(folder)), path.read_bytes()


def _redis(url: str) -> Iterator[tuple[str, Any]]:
    if not url:
        return
    with Redis.from_url(url) as client:
        readers = {
            b"string": client.get,
            b"list": lambda key: client.lrange(key, 0, -1),
            b"set": client.smembers,
            b"zset": lambda key: client.zrange(key, 0, -1),
            b"hash": client.hgetall,
        }
        for key in client.scan_iter():
            kind = client.type(key)
            yield f"redis {key!r}", key
            yield f"redis {key!r}", readers[kind](key) if kind in readers else b""
