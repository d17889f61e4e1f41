"""The kernels as torch operators, on CUDA tensors and, under the interpreter, on the CPU's."""

from __future__ import annotations

from warpkit.kernels.cuda import INTERPRETED, launch
from warpkit.kernels.ops import Operators

call = Operators("cuda", launch, ["CUDA", "CPU"] if INTERPRETED else ["CUDA"]).call
