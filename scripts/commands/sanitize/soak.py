"""Make many mixed calls over 600 shapes, with gradients, and check every result and the memory.

    OMP_NUM_THREADS=1 scripts/sanitize soak
    OMP_NUM_THREADS=1 scripts/sanitize soak --calls 20000 --minutes 3
    OMP_NUM_THREADS=1 scripts/sanitize soak --large

The first result of each function and shape is compared with the reference, where it has one; all
later ones, with their gradients, must have the same bits. Training and evaluation on pictures of
many sizes is such a mix: it throws calls out of the caches while others hold what they made.
--large instead repeats calls on images and fields of 1080 x 1920, new ones every time, whose memory
a cache would keep. The exit status is 1 after a wrong result, or if memory grew by more than 64 MB
after the first half.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import resource
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch import Tensor

import warpkit as wk
from tests.support.fuzzing import weights
from tests.support.inputs import bend, noise
from tests.support.tolerances import TOLERANCE
from warpkit import flow

SHAPES, MOST = 600, 64 << 20
TURN = [[0.9, 0.2, 0.3], [-0.15, 1.1, -0.4]]
TILT = [[1.1, 0.2, 0.3], [-0.15, 0.9, -0.4], [0.001, -0.002, 1.0]]
CALLS: dict[str, Callable[..., Any]] = {
    "warp_affine": lambda x, f, **o: wk.warp_affine(x, x.new_tensor(TURN), **o),
    "warp_affine by a list": lambda x, f, **o: wk.warp_affine(x, TURN, border="reflect", **o),
    "warp_affine of bytes": lambda x, f, **o: wk.warp_affine(
        (x * 255).byte(), x.new_tensor(TURN), interpolation="nearest", **o
    ),
    "warp_perspective": lambda x, f, **o: wk.warp_perspective(x, x.new_tensor(TILT), **o),
    "remap": lambda x, f, **o: wk.remap(x, flow.to_points(f), **o),
    "remap of a view": lambda x, f, **o: wk.remap(
        x, f.movedim(-1, 0).contiguous().movedim(0, -1), relative=True, interpolation="bicubic", **o
    ),
    "remap by integers": lambda x, f, **o: wk.remap(x, flow.to_points(f).long(), **o),
    "resize": lambda x, f: wk.resize(x, (9, 11)),
    "resize, pillow": lambda x, f: wk.resize((x * 255).byte(), (9, 11), arithmetic="pillow"),
    "warp_flow": lambda x, f: wk.warp_flow(x, f),
    "flow.splat": lambda x, f: flow.splat(x, f).image,
}
OF_REFERENCE = [name for name in CALLS if name.startswith(("warp_affine", "warp_persp", "remap"))]


def inputs(shape: Sequence[int], seed: int) -> tuple[Tensor, Tensor]:
    """An image (1, 3, h, w) and a flow (h, w, 2), which require gradients."""
    image, field = noise(1, 3, *shape, seed=seed), bend(*shape, size=2.0, seed=seed)
    return image.float().requires_grad_(), field.float().requires_grad_()


def made(name: str, inputs: tuple[Tensor, Tensor], **options: Any) -> list[Tensor]:
    """A result and its gradients to the image and the flow."""
    result = CALLS[name](*inputs, **options)
    if not result.requires_grad:
        return [result]
    grads = torch.autograd.grad(result, inputs, weights(result), allow_unused=True)
    return [result.detach(), *(grad for grad in grads if grad is not None)]


def digest(tensors: list[Tensor]) -> bytes:
    """A hash of the bits of tensors."""
    summed = hashlib.blake2b(digest_size=16)
    for tensor in tensors:
        summed.update(tensor.contiguous().numpy().tobytes())
    return summed.digest()


def held() -> int:
    """The resident memory of this process in bytes."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def soak(wanted: int, seconds: float, large: bool) -> int:
    """Make `wanted` calls, or stop after `seconds`; the number of failures."""
    random, digests = Random(0), dict[tuple[str, int], bytes]()
    shapes = [(random.randrange(8, 70), random.randrange(8, 70)) for _ in range(SHAPES)]
    wide = inputs((1080, 1920), 0) if large else ()
    begun, before, count, wrong = time.monotonic(), None, 0, 0
    while count < wanted and time.monotonic() - begun < seconds:
        name, n = random.choice([*CALLS]), random.randrange(SHAPES)
        tensors = tuple(x.detach().clone().requires_grad_() for x in wide) or inputs(shapes[n], n)
        results = made(name, tensors)
        if not large and (name, n) not in digests:
            digests[name, n] = digest(results)
            if name in OF_REFERENCE:
                for ours, truth in zip(
                    results, made(name, tensors, backend="reference"), strict=True
                ):
                    size = max(1.0, truth.abs().max().item())
                    apart = (ours.double() - truth.double()).abs().max().item()
                    if not apart <= 100 * TOLERANCE["cpu torch.float32"] * size:
                        print(f"{name} of {shapes[n]}: {apart} from the reference", flush=True)
                        wrong += 1
        elif not large and digests[name, n] != digest(results):
            print(f"{name} of {shapes[n]}: call {count} has other bits", flush=True)
            wrong += 1
        count += 1
        passed = max(count / wanted, (time.monotonic() - begun) / seconds)
        if before is None and passed >= 0.5:
            before = held()
    del tensors, results
    grown = held() - (before or 0)
    print(
        f"{count} calls, {len(digests)} of {len(CALLS) * SHAPES} pairs of a function and a shape, "
        f"{wrong} wrong, {grown / (1 << 20):+.1f} MB, {time.monotonic() - begun:.0f} s"
    )
    return wrong + (grown > MOST)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, help="default: 100,000; 200 with --large")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    calls = options.calls or (200 if options.large else 100_000)
    return 1 if soak(calls, 60 * options.minutes, options.large) else 0


if __name__ == "__main__":
    sys.exit(main())
