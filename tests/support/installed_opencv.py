"""The installed OpenCV on x86-64, whose pixels are guaranteed, for tests that compare them.

Elsewhere these tests are skipped with a reason; recorded outputs of x86-64 are compared everywhere.
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
    """cv2; without the guaranteed one, the test or the whole file is skipped."""
    if reason := of_another_processor():
        pytest.skip(reason, allow_module_level=True)
    return pytest.importorskip("cv2")
