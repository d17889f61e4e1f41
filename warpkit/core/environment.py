"""The processor, versions of packages, how to install missing ones, and settings."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType

TRITON_INTERPRETED = os.environ.get("TRITON_INTERPRET", "0") not in ("", "0")
"""Whether kernels for CUDA run on the CPU; Triton reads it when they are imported."""


def processor() -> str:
    """The CPU's name, as far as the system tells."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def installed(package: str) -> str:
    """A package's version, without importing it; empty if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def versions_of(packages: Mapping[str, str]) -> dict[str, str]:
    """The versions of those packages, by whatever names, that are installed."""
    versions = {name: installed(package) for name, package in packages.items()}
    return {name: version for name, version in versions.items() if version}


def how_to_install(extra: str) -> str:
    """The command that installs an extra; on PyPI `warpkit` is another project."""
    return f"pip install '.[{extra}]' in a checkout"


def import_optional(module: str, name: str, purpose: str, extra: str = "cli") -> ModuleType:
    """A module of a package that may be missing; the error says what in `name` needs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = {"PIL": "Pillow"}.get(module.partition(".")[0], module.partition(".")[0])
        text = f"{name}: {purpose} needs {package}, which is not installed: {how_to_install(extra)}"
        raise ModuleNotFoundError(text, name=error.name) from None
