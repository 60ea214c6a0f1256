"""The router of the API. Plain functions, for operations that wait only for the database, run in a thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

import ninja
from asgiref.sync import iscoroutinefunction, sync_to_async


class Router(ninja.Router):
    def add_api_operation(
        self, path: str, methods: list[str], view_func: Callable[..., Any], **options: Any
    ) -> None:
        super().add_api_operation(path, methods, in_thread(view_func), **options)


def in_thread(view: Callable[..., Any]) -> Callable[..., Any]:
    """Return a plain function as a coroutine function that runs it in a thread, and a coroutine function unchanged."""
    if iscoroutinefunction(view):
        return view
    call = sync_to_async(view)

    @wraps(view)
    async def run(*args: Any, **kwargs: Any) -> Any:
        return await call(*args, **kwargs)

    # Ninja resolves names in annotations in the module of the function it is given, which is this one.
    run.__signature__ = signature(view, eval_str=True)  # type: ignore[attr-defined]
    return run
