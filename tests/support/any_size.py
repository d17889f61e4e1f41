"""Exports for sizes that are not known."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def any_size() -> Iterator[None]:
    """Skip where torch's exporter rules out a batch of 2 ** 63 - 1, and so any: 2.7's does."""
    try:
        yield
    except Exception as error:
        if f"!= {2**63 - 1}" in str(error):
            pytest.skip("this torch's exporter rules out a batch of 2 ** 63 - 1, and so any size")
        raise
