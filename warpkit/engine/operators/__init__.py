"""Operators: one file for each, which names its definition and the modules of its kernels.

Kernels are imported by the first call that they can serve: most calls need few of them.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType

ENGINE = "warpkit.engine"


def native(name: str) -> Callable[[], ModuleType | None]:
    """Imports a module of `engine.cpu` when it is called; None without the native library."""

    module = None

    def load() -> ModuleType | None:
        nonlocal module
        if module is None and import_module(f"{ENGINE}.cpu.native_library").LIBRARY:
            module = import_module(f"{ENGINE}.cpu.{name}")
        return module

    return load


def triton(name: str) -> Callable[[], ModuleType | None]:
    """Imports a module of `engine.triton` when it is called; None without a Triton that works."""

    def load() -> ModuleType | None:
        works = import_module(f"{ENGINE}.triton").HAS_TRITON
        return import_module(f"{ENGINE}.triton.{name}") if works else None

    return load
