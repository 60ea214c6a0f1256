"""Finds what threads share: mutable module-level objects and the results of cached functions."""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import importlib
import inspect
import logging
import pkgutil
import re
import types
import typing
from collections.abc import Iterator
from datetime import date, timedelta, tzinfo
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import PurePath
from types import ModuleType
from typing import Any
from uuid import UUID

from django.contrib import admin
from pydantic import BaseModel

PACKAGES = ("memory", "agents", "chatapp")
UNCHANGING = (
    *(type(None), bool, int, float, complex, str, bytes, range, type, property, classmethod, staticmethod),
    *(re.Pattern, UUID, date, timedelta, tzinfo, Decimal, Fraction, PurePath, enum.Enum),
    *(IPv4Address, IPv4Network, IPv6Address, IPv6Network, ModuleType, logging.Logger, functools.partial),
    *(types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.GenericAlias, types.UnionType),
    *(types.MethodDescriptorType, types.WrapperDescriptorType, types.EllipsisType),
    *(typing.TypeVar, typing.ParamSpec),
)
CONTAINERS = (tuple, frozenset, types.MappingProxyType)
CHANGING = (dict, list, set, bytearray)
CHANGES = {
    *("append", "appendleft", "add", "extend", "insert", "update", "setdefault", "sort"),
    *("pop", "popitem", "popleft", "clear", "remove", "discard"),
}


def modules() -> Iterator[ModuleType]:
    """Yield all our modules."""
    admin.autodiscover()  # first, because our admin pages replace others
    for package in PACKAGES:
        root = importlib.import_module(package)
        yield root
        for found in pkgutil.walk_packages(root.__path__, f"{package}."):
            if ".migrations." not in f"{found.name}." and not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


def shared_objects() -> Iterator[tuple[str, str]]:
    """Yield (module.name, type) of all mutable objects that threads share."""
    for module in modules():
        own = {name: value for name, value in vars(module).items() if _is_made_here(module, name, value)}
        for name, value in own.items():
            where = f"{module.__name__}.{name}"
            if isinstance(value, functools._lru_cache_wrapper):
                returned = inspect.signature(value).return_annotation
                yield where, f"cached: {returned}"
            elif isinstance(value, CHANGING):
                if name in _names_changed(module):
                    yield where, type(value).__name__
            elif not is_unchanging(value):
                yield where, f"{type(value).__module__}.{type(value).__qualname__}"


def _is_made_here(module: ModuleType, name: str, value: Any) -> bool:
    if name.startswith("__") or isinstance(value, (ModuleType, type)):
        return False
    if isinstance(value, (types.FunctionType, functools._lru_cache_wrapper)):
        return bool(value.__module__ == module.__name__)
    return name in _names_assigned(module)


@functools.cache
def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


@functools.cache
def _names_assigned(module: ModuleType) -> frozenset[str]:
    names: set[str] = set()
    for statement in _tree(module).body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        for target in targets:
            names |= {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
    return frozenset(names)


@functools.cache
def _names_changed(module: ModuleType) -> set[str]:
    """Return the names that functions of the module change in place or rebind."""
    changed: set[str] = set()
    functions = [
        node for node in ast.walk(_tree(module)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    for function in functions:
        for node in ast.walk(function):
            match node:
                case ast.Global(names=names):
                    changed |= {*names}
                case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                    changed.add(name)
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute)) if (
                    attribute in CHANGES
                ):
                    changed.add(name)
    return changed


def is_unchanging(value: Any) -> bool:
    if isinstance(value, UNCHANGING) or typing.get_origin(value) is not None:
        return True
    if isinstance(value, CONTAINERS):
        members = [*value, *value.values()] if isinstance(value, types.MappingProxyType) else value
        return all(is_unchanging(member) or isinstance(member, CHANGING) for member in members)
    if isinstance(value, BaseModel):
        return value.model_config.get("frozen", False)
    if dataclasses.is_dataclass(value):
        return bool(type(value).__dataclass_params__.frozen)  # type: ignore[attr-defined]
    return False
