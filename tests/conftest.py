"""Fixtures and options for all tests."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator

import pytest
import torch

from tests.support.processes import Processes


@pytest.fixture(autouse=True)
def ipp_as_it_was() -> Iterator[None]:
    """Restore OpenCV's IPP after each test; switching it changes pixels."""
    cv2 = sys.modules.get("cv2")
    used = cv2.ipp.useIPP() if cv2 else None
    yield
    if cv2 and cv2.ipp.useIPP() != used:
        cv2.ipp.setUseIPP(used)


@pytest.fixture
def fresh_compiler() -> Iterator[None]:
    """torch.compile without earlier tests' code, and without warnings from its internals."""
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="session")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """Four processes: five images make shards of 2, 2, 1 and 0."""
    group = Processes(4, tmp_path_factory.mktemp("store") / "store")
    yield group
    group.close()
