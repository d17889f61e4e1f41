"""The kernels as torch operators, on CPU tensors."""

from __future__ import annotations

from warpkit.engine.backends.cpu import launch
from warpkit.engine.backends.operators import BackendOperators

OPERATORS = BackendOperators("cpu", launch, ["CPU"])
