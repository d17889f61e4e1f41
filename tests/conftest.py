"""What several files of tests share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
import torch

from tests.support.processes import Processes


@pytest.fixture
def fresh_compiler() -> Iterator[None]:
    """torch.compile without earlier tests' code; its own insides' warnings are not ours to fix."""
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="session")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """Four: five images make shards of 2, 2, 1 and 0."""
    group = Processes(4, tmp_path_factory.mktemp("store") / "store")
    yield group
    group.close()
