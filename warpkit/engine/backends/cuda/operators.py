"""The kernels as torch operators, on CUDA tensors, and with the interpreter on CPU tensors."""

from __future__ import annotations

from warpkit.core.environment import TRITON_INTERPRETED
from warpkit.engine.backends.cuda import launch
from warpkit.engine.backends.operators import BackendOperators

OPERATORS = BackendOperators("cuda", launch, ["CUDA", "CPU"] if TRITON_INTERPRETED else ["CUDA"])
