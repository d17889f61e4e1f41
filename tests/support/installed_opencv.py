"""The installed OpenCV, for tests that compare pixels with it: x86-64's, which are promised.

Elsewhere they are skipped, with the reason; recorded outputs of x86-64 are compared everywhere.
"""

from __future__ import annotations

from typing import Any

import pytest

from warpkit.engine.arithmetic.guarantees import of_another_processor

compares_with_opencv = pytest.mark.skipif(
    bool(of_another_processor()), reason=of_another_processor()
)
"""Of a test that needs the pixels of the promised OpenCV."""


def installed_opencv() -> Any:
    """cv2; the test, or the whole file, is skipped where it is not the promised one."""
    if reason := of_another_processor():
        pytest.skip(reason, allow_module_level=True)
    return pytest.importorskip("cv2")
