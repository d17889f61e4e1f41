"""What several files of tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.processes import Processes


@pytest.fixture(scope="session")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """Four: five images make shards of 2, 2, 1 and 0."""
    group = Processes(4, tmp_path_factory.mktemp("store") / "store")
    yield group
    group.close()
