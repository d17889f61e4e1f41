"""What of this machine is seen in OpenCV's last bits: the width of its vector registers."""

from __future__ import annotations

import torch

VECTOR_BYTES = 64 if torch.backends.cpu.get_cpu_capability() == "AVX512" else 32
"""64 with AVX-512, else AVX2's 32.

The pixels that fill a register are summed in another order than those that are left at the end of a
row, and Intel's IPP has other code for each width.
"""
