"""Operators: one file for each, which names its definition and the modules of its kernels.

Kernels are imported by the first call that they can serve: most calls need few of them.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

BACKENDS = "warpkit.engine.backends"


def native(name: str) -> Callable[[], ModuleType | None]:
    """Imports a module of `backends.cpu` when it is called; None without the native library."""

    return _loader(f"cpu.{name}", lambda: import_module(f"{BACKENDS}.cpu.opened").LIBRARY)


def triton(name: str) -> Callable[[], ModuleType | None]:
    """Imports a module of `backends.cuda` when it is called; None without a Triton that works."""
    return _loader(f"cuda.{name}", lambda: import_module(f"{BACKENDS}.cuda").HAS_TRITON)


def _loader(name: str, works: Callable[[], Any]) -> Callable[[], ModuleType | None]:
    module = None

    def load() -> ModuleType | None:
        nonlocal module
        if module is None and works():
            module = import_module(f"{BACKENDS}.{name}")
        return module

    return load
