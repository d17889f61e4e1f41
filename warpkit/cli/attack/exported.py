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
"""Names that end one of the members of such a file, those of torch 2.7 too."""
SAMPLES = ("sample_inputs", "example_inputs")
"""Parts of the names of the inputs that a program was exported with: torch unpickles them."""
LIBRARIES = "aotinductor/"
"""The folder of compiled code, which torch loads although nobody calls it."""
WEIGHTS_ONLY = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"


def load_exported(path: Path) -> Any:
    """The module of a file, whatever its sample inputs and its pickles hold.

    Sample inputs and compiled libraries are left out before torch sees the file; weights and
    constants that torch.save wrote are read as tensors and nothing else.
    """
    with weights_only(), silent_logs():
        try:
            # a buffer: torch refuses other endings than its own
            return torch.export.load(harmless(path)).module()
        except pickle.UnpicklingError:
            raise ValueError("it has weights or constants that are no tensors") from None


def harmless(path: Path) -> io.BytesIO:
    """A copy of the archive without libraries, and with no bytes in place of sample inputs."""
    copy = io.BytesIO()
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(copy, "w") as kept:
        for member in archive.infolist():
            name = member.filename.casefold()  # as torch looks for them
            if LIBRARIES in name or "opaque_obj" in name:
                continue
            kept.writestr(member, b"" if any(s in name for s in SAMPLES) else archive.read(member))
    copy.seek(0)
    return copy


@contextmanager
def weights_only() -> Iterator[None]:
    """Have every torch.load refuse what is no tensor, those that ask for the contrary too."""
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
    """Without torch's own lines about files that an older torch wrote."""
    usual = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(usual)
