"""Properties of this machine that affect OpenCV's last bits: its kind and vector width."""

from __future__ import annotations

import platform

import torch

X86_64 = ("x86_64", "amd64")
"""The names of the processors whose OpenCV is reproduced."""

VECTOR_BYTES = 64 if torch.backends.cpu.get_cpu_capability() == "AVX512" else 32
"""64 with AVX-512, otherwise AVX2's 32. It is 32 on ARM, too, because warpkit reproduces OpenCV for
x86-64 everywhere.

Pixels that fill a register are summed in another order than those that remain at the end of a row,
and Intel's IPP has different code for each width. NEON's registers have 16 bytes, and OpenCV's ARM
wheels sum by these. But those wheels also fuse products and sums, so a width of 16 would give the
pixels of neither.
"""


def machine() -> str:
    """The kind of this processor, which is that of the installed wheels."""
    return platform.machine().lower()
