"""What recall is held against: the newest messages, and the ranking the database brings along (any of the words).

Both fill the budget with whole messages at 4 characters a token, and with nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

CHARS_PER_TOKEN = 4


def latest(conversation_id: str, question: str, budget: int) -> list[str]:
    """The question and the longest suffix that fits."""
    return _fill(_newest_first(conversation_id), question, budget, skips_long=False)


def _newest_first(conversation_id: str) -> Iterable[str]:
    from chatapp.conversations.models import Message

    rows = Message.objects.filter(conversation_id=conversation_id).order_by("-position")
    return (parts[0]["text"] for parts in rows.values_list("parts", flat=True))


def _fill(texts: Iterable[str], question: str, budget: int, *, skips_long: bool) -> list[str]:
    chosen, left = [question], budget * CHARS_PER_TOKEN - len(question)
    for text in texts:
        if len(text) <= left:
            chosen.append(text)
            left -= len(text)
        elif not skips_long:
            break
    return chosen


class FullText:
    """SQLite's FTS5 with bm25 and the porter stemmer, or PostgreSQL's ts_rank with its English configuration."""

    def __init__(self) -> None:
        from django.db import connection

        self._is_postgres = connection.vendor == "postgresql"
        self._known: set[str] = set()

    def __call__(self, conversation_id: str, question: str, budget: int) -> list[str]:
        if conversation_id not in self._known:
            self._take_in(conversation_id)
            self._known.add(conversation_id)
        words = list(dict.fromkeys(re.findall(r"\w+", question.lower())))
        return _fill(self._ranked(conversation_id, words), question, budget, skips_long=True)

    def _take_in(self, conversation_id: str) -> None:
        texts = list(_newest_first(conversation_id))[::-1]
        if self._is_postgres:
            self._run(f"CREATE TABLE {_table(conversation_id)} (text text, terms tsvector)")
            statement = f"INSERT INTO {_table(conversation_id)} VALUES (%s, to_tsvector('english', %s))"
            rows: list[tuple[str, ...]] = [(text, text) for text in texts]
        else:
            self._run(
                f"CREATE VIRTUAL TABLE {_table(conversation_id)} USING fts5(text, tokenize = 'porter unicode61')"
            )
            statement = f"INSERT INTO {_table(conversation_id)} VALUES (%s)"
            rows = [(text,) for text in texts]
        for row in rows:
            self._run(statement, row)

    def _ranked(self, conversation_id: str, words: list[str]) -> list[str]:
        table = _table(conversation_id)
        if self._is_postgres:
            query = (
                f"SELECT text FROM {table}, to_tsquery('english', %s) asked WHERE terms @@ asked"
                " ORDER BY ts_rank(terms, asked) DESC"
            )
            return [row[0] for row in self._run(query, (" | ".join(words),))]
        query = f"SELECT text FROM {table} WHERE {table} MATCH %s ORDER BY bm25({table})"
        return [row[0] for row in self._run(query, (" OR ".join(f'"{word}"' for word in words),))]

    def _run(self, statement: str, values: tuple[str, ...] = ()) -> list[Any]:
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchall() if cursor.description else []


def _table(conversation_id: str) -> str:
    return f"words_{conversation_id.replace('-', '')}"
