"""The kernels as torch operators, on CUDA tensors and, under the interpreter, on the CPU's."""

from __future__ import annotations

from warpkit.core.environment import TRITON_INTERPRETED as INTERPRETED
from warpkit.engine.backends.cuda import launch
from warpkit.engine.backends.operators import Operators

call = Operators("cuda", launch, ["CUDA", "CPU"] if INTERPRETED else ["CUDA"]).call
