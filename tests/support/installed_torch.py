"""Whether the installed torch resizes bytes by integers, for tests that compare its pixels."""

from __future__ import annotations

import pytest
import torch

HAS_INTEGERS = torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
beside_torch = pytest.mark.skipif(not HAS_INTEGERS, reason="torch resizes floats on this processor")
