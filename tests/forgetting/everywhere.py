"""Finds a word in all tables of the database and in all files of the data folder."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.db import connection


def tables_with(word: str) -> list[str]:
    with connection.cursor() as cursor:
        found = []
        for name in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{name}"')
            if any(_says(value, word) for row in cursor.fetchall() for value in row):
                found.append(name)
        return found


def _says(value: object, word: str) -> bool:
    if isinstance(value, (bytes, memoryview)):
        return word.encode().lower() in bytes(value).lower()
    return word.lower() in str(value).lower()


def files_with(word: str) -> list[Path]:
    """Return the files in DATA_DIR that contain the word, including the database's own if they are there."""
    paths = [path for path in Path(settings.DATA_DIR).rglob("*") if path.is_file()]
    return [path for path in paths if word.encode() in path.read_bytes()]
