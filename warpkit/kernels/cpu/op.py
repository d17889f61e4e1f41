"""The kernels as torch operators, on CPU tensors."""

from __future__ import annotations

from warpkit.kernels.cpu import launch
from warpkit.kernels.ops import Operators

operators = Operators("cpu", launch, ["CPU"])
call = operators.call
