"""Compiles `condition = True` to the condition itself, on every database and version of Django.

From 6.1 on, Django passes the value to SQLite as a parameter, but SQLite uses a partial index only if the statement
repeats the condition of the index.
"""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField
from django.db.models.lookups import Exact
from django.db.models.sql.compiler import SQLCompiler


@BooleanField.register_lookup
class BooleanExact(Exact):
    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> Any:
        if not isinstance(self.rhs, bool) or not getattr(self.lhs, "conditional", False):
            return super().as_sql(compiler, connection)
        column, parameters = self.process_lhs(compiler, connection)
        return column if self.rhs else f"NOT {column}", parameters
