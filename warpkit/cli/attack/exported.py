"""Loads a program of torch.export.save without unpickling or running anything else in the file."""

from __future__ import annotations

import io
import logging
import os
import pickle
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

PROGRAMS = ("archive_format", "serialized_exported_program.json")
"""Ends of the names of members that identify such a file, including those of torch 2.7."""
SAMPLES = ("sample_inputs", "example_inputs")
"""Parts of the names of a program's sample inputs, which torch would unpickle."""
LIBRARIES = "aotinductor/"
"""The folder of compiled code, which torch loads even if it is never called."""
WEIGHTS_ONLY = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"


def load_exported(path: Path) -> Any:
    """The module in a file, whatever its sample inputs and pickles contain.

    Sample inputs and compiled libraries are removed before torch reads the file. Weights and
    constants that torch.save wrote are read only as tensors.
    """
    with weights_only(), silent_logs():
        try:
            # a buffer: torch rejects unknown suffixes of files
            return torch.export.load(harmless(path)).module()
        except pickle.UnpicklingError:
            raise ValueError("it has weights or constants that are no tensors") from None


def harmless(path: Path) -> io.BytesIO:
    """A copy of the archive without libraries, and with empty sample inputs."""
    copy = io.BytesIO()
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(copy, "w") as filtered:
        for member in archive.infolist():
            name = member.filename.casefold()  # torch ignores the case, too
            if LIBRARIES in name or "opaque_obj" in name:
                continue
            filtered.writestr(
                member, b"" if any(s in name for s in SAMPLES) else archive.read(member)
            )
    copy.seek(0)
    return copy


@contextmanager
def weights_only() -> Iterator[None]:
    """Makes every torch.load reject anything but tensors, even with weights_only=False."""
    usual = os.environ.get(WEIGHTS_ONLY)
    os.environ[WEIGHTS_ONLY] = "1"
    try:
        yield
    finally:
        if usual is None:
            del os.environ[WEIGHTS_ONLY]
        else:
            os.environ[WEIGHTS_ONLY] = usual


@contextmanager
def silent_logs() -> Iterator[None]:
    """Suppresses torch's log lines about files from an older version."""
    usual = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(usual)
