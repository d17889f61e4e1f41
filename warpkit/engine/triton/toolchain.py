"""What Triton needs beside itself to compile kernels: a device that it supports, and a compiler."""

from __future__ import annotations

import os
import shutil
import sysconfig
from functools import cache
from pathlib import Path

import torch

OLDEST = (7, 5)
"""The least compute capability for which all kernels have been compiled."""


@cache
def missing(device: torch.device) -> list[str]:
    """The reasons why Triton cannot compile kernels for a CUDA device."""
    reasons = []
    if torch.version.hip is None:
        capability = torch.cuda.get_device_capability(device)
        if capability < OLDEST:
            least, own = (".".join(map(str, numbers)) for numbers in (OLDEST, capability))
            reasons.append(f"needs a GPU of compute capability {least}, got {own}")
    # Triton builds a launcher in C for each signature of a kernel
    if "CC" not in os.environ and not (shutil.which("gcc") or shutil.which("clang")):
        reasons.append("needs a C compiler for Triton: gcc, clang, or the variable CC")
    elif not (Path(_include()) / "Python.h").is_file():
        reasons.append("needs Python.h for Triton: install the headers of Python")
    return reasons


def _include() -> str:
    """The folder in which Triton expects Python's headers."""
    scheme = sysconfig.get_default_scheme()
    # Debian's own scheme has another folder for what is installed locally
    scheme = "posix_prefix" if scheme == "posix_local" else scheme
    return sysconfig.get_paths(scheme)["include"]
