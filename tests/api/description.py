"""The operations of the API and its OpenAPI description, which takes a second to build: once, and not at collection."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from ninja import Router

from chatapp.urls import ROUTERS, api

PREFIX = "/api/v1"


def all_operations() -> list[tuple[str, str]]:
    """Return (method in lower case, path) of each operation, in the order of the description."""
    return [(method, PREFIX + path) for method, path in operations_of(ROUTERS)]


def operations_of(routers: Iterable[Router]) -> list[tuple[str, str]]:
    """Return (method in lower case, path below the API) of each operation."""
    return [
        (method.lower(), path)
        for router in routers
        for path, view in router.path_operations.items()
        for operation in view.operations
        for method in operation.methods
    ]


def is_for_operators(path: str) -> bool:
    return path.startswith(f"{PREFIX}/admin/")


@cache
def describe_api() -> dict[str, Any]:
    return api.get_openapi_schema(path_prefix=PREFIX)
