"""Results of the CUDA kernels beside the definition's: python -m benchmarks.cuda_results

Results and gradients; every call is made twice, and the second one must give the first one's bits.
One line for each case: right, WRONG or FAILED. --part N --of M: every Mth case from the Nth on, for
processes side by side, of which each compiles its own kernels. --few: small calls of every kernel,
for memory checkers. --large: one call of the benchmark's size and its gradients, for profilers.

Without a device it needs TRITON_INTERPRET=1, and rehearses.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

import warpkit as wk
from benchmarks.cuda import DEVICE, LARGE, points_of
from warpkit.types import Border, Interpolation

SIZE = (37, 45)
LIMITS = {
    torch.float64: (1e-12, 1e-9),
    torch.float32: (4e-6, 1e-4),
    torch.float16: (2e-3, 8e-3),
    torch.bfloat16: (1.6e-2, 6e-2),
    torch.uint8: (0.0, 0.0),
}
"""The largest differences of results and of gradients, as a part of the largest entry, at least 1:
sums of 16 taps and of 1,700 pixels, in another order."""


class Case(NamedTuple):
    """A call, named by its options."""

    kind: str
    dtype: torch.dtype
    interpolation: Interpolation = "bilinear"
    border: Border = "constant"
    last: bool = False

    def __str__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        last = "channels-last" if self.last else ""
        return " ".join((self.kind, dtype, self.interpolation, str(self.border), last)).strip()


CALLS: dict[str, Callable[..., Tensor]] = {
    "affine": wk.warp_affine,
    "perspective": wk.warp_perspective,
    "points": wk.remap,
}


def cases() -> Iterator[Case]:
    """Every kind of map with every type, interpolation and border."""
    for kind in CALLS:
        for dtype in LIMITS:
            yield Case(kind, dtype)
        for interpolation in ("nearest", "bicubic", "lanczos4"):
            yield Case(kind, torch.float32, interpolation)
        for border in ("replicate", "reflect", "reflect_101", "wrap", "transparent"):
            yield Case(kind, torch.float32, border=border)
        yield Case(kind, torch.float32, last=True)


def where(kind: str, count: int, size: tuple[int, int], scale: float = 1.1) -> Tensor:
    """Maps that turn pictures by about 33 degrees, on the device."""
    angle = 33 + torch.rand(count, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    middle = (size[1] - 1) / 2, (size[0] - 1) / 2
    matrix = wk.rotation_matrix(middle, angle, scale).to(DEVICE)
    if kind == "points":
        return points_of(matrix, size)
    if kind == "affine":
        return matrix
    last = torch.tensor([2e-4, -1e-4, 1.0], dtype=torch.float64, device=DEVICE)
    return torch.cat((matrix, last.expand(count, 1, 3)), 1)


def results(case: Case, backend: str) -> list[Tensor]:
    """The result, and the gradients to image and map, of the types that have one."""
    generator = torch.Generator().manual_seed(1)
    image, background, grad = (torch.rand(2, 3, *SIZE, generator=generator) for _ in range(3))
    has_gradient = case.dtype != torch.uint8
    image, background = (
        (x if has_gradient else x * 255).to(DEVICE, case.dtype) for x in (image, background)
    )
    if case.last:
        image = image.contiguous(memory_format=torch.channels_last)
    options: dict[str, Any] = {"interpolation": case.interpolation, "border": case.border}
    if case.border == "transparent":
        options["background"] = background
    image.requires_grad_(has_gradient)
    at = where(case.kind, 2, SIZE).requires_grad_(has_gradient and case.interpolation != "nearest")
    result = CALLS[case.kind](image, at, backend=backend, **options)
    leaves = [x for x in (image, at) if x.requires_grad]
    grads = torch.autograd.grad(result, leaves, grad.to(result)) if leaves else ()
    return [result.detach(), *grads]


def judged(case: Case) -> str:
    """The line of a case."""
    try:
        ours, again, definition = (results(case, b) for b in ("cuda", "cuda", "reference"))
    except Exception as error:  # of any kind: the other cases still tell something
        return f"FAILED {case}: {type(error).__name__} {str(error)[:300]!r}"
    far = [
        float((a.double() - b.double()).abs().max() / b.double().abs().max().clamp(min=1))
        for a, b in zip(ours, definition, strict=True)
    ]
    first, others = LIMITS[case.dtype]
    near = all(value <= (others if n else first) for n, value in enumerate(far))
    repeats = all(torch.equal(a, b) for a, b in zip(ours, again, strict=True))
    verdict = "right" if near and repeats else "WRONG"
    tail = "" if repeats else ", and other bits in the second call"
    return f"{verdict} {case}: off by {', '.join(f'{value:.1e}' for value in far)}{tail}"


def few() -> None:
    """Small calls of every kernel, of odd sizes."""
    for case in cases():
        results(case, "cuda")


def large() -> None:
    """One call of the benchmark's size, and its gradients."""
    shape = LARGE if DEVICE == "cuda" else (2, 3, 40, 40)
    image = torch.rand(shape, device=DEVICE).requires_grad_()
    matrix = where("affine", shape[0], shape[-2:]).requires_grad_()
    for border in ("constant", "reflect"):
        warp = partial(wk.warp_affine, border=border, backend="cuda")
        torch.autograd.grad(warp(image, matrix).sum(), (image, matrix))


def main() -> int:
    """Check the cases, or make the other calls."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--of", type=int, default=1)
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    if options.few or options.large:
        (few if options.few else large)()
        return 0
    lines = []
    for case in list(cases())[options.part :: options.of]:
        lines.append(judged(case))
        print(lines[-1], flush=True)
    return any(not line.startswith("right") for line in lines)


if __name__ == "__main__":
    sys.exit(main())
