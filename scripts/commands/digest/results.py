"""Hash every result and gradient of a table of calls, to see whether any bit has changed.

Write the hashes before a refactoring and compare after it, on the same machine with the same
packages: the bits also depend on the processor's instructions and on torch's own kernels.

    scripts/digest results --out before.json
    scripts/digest results --compare before.json

With TRITON_INTERPRET=1 the interpreter runs the CUDA kernels.
"""

import argparse
import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import warpkit as wk

INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos4")
BORDERS = ("constant", "replicate", "reflect", "reflect_101", "wrap", "transparent")
RULES = tuple(product(INTERPOLATIONS, BORDERS))
FEW = tuple(product(INTERPOLATIONS, ("constant", "reflect_101", "transparent")))
"""The types for slow cases, which are plain torch operations."""
SIZE = (37, 41)
"""Odd, and more than one tile of 32 pixels."""

Call = Callable[[], list[Tensor]]


def drawn(*shape: int, dtype: str = "float64", seed: int = 0, scale: float = 1.0) -> Tensor:
    """Noise: floats in [0, scale), integers over their whole range."""
    bits = np.random.Generator(np.random.PCG64(seed)).random(shape)
    kind = getattr(torch, dtype)
    if kind.is_floating_point:
        return torch.from_numpy(bits * scale).to(kind)
    limits = torch.iinfo(kind)
    span = limits.max - limits.min
    return torch.from_numpy(np.floor(bits * (span + 1)) + limits.min).long().to(kind)


def with_gradients(function: Callable[..., Tensor], *leaves: Tensor) -> list[Tensor]:
    """The result, and the gradients to those floating-point leaves that have one."""
    leaves = tuple(
        leaf.clone().requires_grad_() if leaf.is_floating_point() else leaf for leaf in leaves
    )
    out = function(*leaves)
    tensors = [out.detach()]
    if out.requires_grad:
        wanted = [leaf for leaf in leaves if leaf.requires_grad]
        weight = drawn(*out.shape, seed=77).to(out.dtype) - 0.5
        grads = torch.autograd.grad(out, wanted, weight, allow_unused=True)
        tensors += [torch.zeros(()) if grad is None else grad for grad in grads]
    return tensors


def matrices() -> dict[str, Tensor]:
    """Matrices source -> destination: a rotation, a reduction and a perspective."""
    turn = wk.rotation_matrix((20.0, 15.0), torch.tensor([33.0, -71.0], dtype=torch.float64), 1.1)
    shrink = torch.tensor([[0.31, 0.05, 1.0], [-0.02, 0.27, 2.0]], dtype=torch.float64)
    rows = [[1.1, 0.2, -1.0], [-0.1, 0.9, 0.5], [0.002, -0.004, 1.0]]
    return {
        "turn": turn,
        "shrink": shrink,
        "perspective": torch.tensor(rows, dtype=torch.float64),
    }


def images(dtype: str) -> dict[str, Tensor]:
    """One, three and many channels, channels-last, one pixel, and an expanded batch."""
    last = drawn(2, 3, 35, 44, dtype=dtype, seed=3).contiguous(memory_format=torch.channels_last)
    return {
        "three": drawn(2, 3, 33, 45, dtype=dtype, seed=1),
        "nine": drawn(1, 9, 20, 31, dtype=dtype, seed=2),
        "last": last,
        "single": drawn(1, 2, 1, 1, dtype=dtype, seed=4),
        "expanded": drawn(1, 1, 40, 30, dtype=dtype, seed=5).expand(2, 1, 40, 30),
    }


def warps(
    backend: str,
    dtypes: tuple[str, ...],
    names: tuple[str, ...],
    rules: Sequence[tuple[str, str]] = RULES,
) -> Iterator[tuple]:
    """Every rule and type of one backend, with all three kinds of map."""
    for dtype in dtypes:
        pictures = images(dtype)
        for name, (interpolation, border) in product(names, rules):
            image = pictures[name]
            options: dict = {"interpolation": interpolation, "border": border, "backend": backend}
            for kind, matrix in matrices().items():
                warp = wk.warp_perspective if kind == "perspective" else wk.warp_affine
                yield (
                    f"{kind} {backend} {dtype} {name} {interpolation} {border}",
                    lambda w=warp, i=image, m=matrix, o=options: warped(w, i, m, dict(o)),
                )
            points = drawn(2, *SIZE, 2, seed=6, scale=60.0) - 8
            points[0, 3, 4], points[1, 5, 6, 0] = torch.nan, 1e30
            yield (
                f"points {backend} {dtype} {name} {interpolation} {border}",
                lambda i=image, p=points, o=options: warped(wk.remap, i, p, dict(o)),
            )


def warped(warp: Callable, image: Tensor, mapping: Tensor, options: dict) -> list[Tensor]:
    """A warp's result and its gradients to image, mapping, and border value or background."""
    if warp is not wk.remap:
        options["size"] = SIZE
    real = image.dtype if image.is_floating_point() else torch.float64
    if options["border"] == "transparent":
        batch = torch.broadcast_shapes(image.shape[:-3], (2,))
        below = drawn(*batch, image.shape[-3], *SIZE, seed=8).to(real)
        if mapping.ndim == 2:
            below = below[: image.shape[0]]
        below = below if image.is_floating_point() else (below * 200).to(image.dtype)
        return with_gradients(
            lambda i, m, b: warp(i, m, background=b, **options), image, mapping, below
        )
    value = drawn(image.shape[-3], seed=9).to(real)
    if not image.is_floating_point():
        return with_gradients(lambda i: warp(i, mapping, border_value=value, **options), image)
    return with_gradients(
        lambda i, m, v: warp(i, m, border_value=v, **options), image, mapping, value
    )


def opencv() -> Iterator[tuple]:
    """OpenCV's arithmetics, through the tensor functions and through `warpkit.opencv`."""
    for arithmetic, backend, dtype in product(
        ("opencv4", "opencv5"), ("auto", "reference"), ("uint8", "float32", "float64")
    ):
        if backend == "reference" and dtype != "uint8":
            continue  # "auto" selects it for most calls
        for interpolation, border in RULES if backend == "auto" else FEW:
            options = {"interpolation": interpolation, "border": border, "arithmetic": arithmetic}
            image = images(dtype)["three"]
            for kind, matrix in matrices().items():
                warp = wk.warp_perspective if kind == "perspective" else wk.warp_affine
                yield (
                    f"{kind} {arithmetic} {backend} {dtype} {interpolation} {border}",
                    lambda w=warp, i=image, m=matrix, o={**options, "backend": backend}: warped(
                        w, i, m, dict(o)
                    ),
                )
    picture = drawn(33, 45, 3, dtype="uint8", seed=10).numpy()
    turn = matrices()["turn"][0].numpy()
    for version, flags in product(("opencv4", "opencv5"), (0, 1, 2, 4)):
        yield (
            f"face {version} {flags}",
            lambda v=version, f=flags: [
                torch.from_numpy(
                    wk.opencv.warpAffine(picture, turn, (41, 37), flags=f, arithmetic=v)
                )
            ],
        )


def averaged() -> Iterator[tuple]:
    """antialias, and the surrogate gradient to the image."""
    image, shrink = images("float64")["three"], matrices()["shrink"]
    for antialias, border in product((True, 3), BORDERS[:5]):
        yield (
            f"antialias {antialias} {border}",
            lambda a=antialias, b=border: with_gradients(
                lambda i, m: wk.warp_affine(i, m, antialias=a, border=b), image, shrink
            ),
        )
    yield (
        "straight through",
        lambda: with_gradients(
            lambda i, m: wk.warp_affine(i, m, image_gradient="straight_through"), image, shrink
        ),
    )


def objects() -> Iterator[tuple]:
    """Crops, pastes and transforms of objects."""
    pictures = drawn(3, 3, 40, 50, seed=20)
    corners = drawn(7, 2, seed=21, scale=25.0)
    boxes = torch.cat((corners, corners + 6 + drawn(7, 2, seed=22, scale=15.0)), dim=1)
    index = torch.tensor([0, 2, 1, 1, 0, 2, 0])
    turns = wk.rotation_matrix((5.0, 5.0), drawn(7, seed=23, scale=90.0), 0.9)
    patch, mask = drawn(7, 3, 9, 8, seed=24), drawn(7, 1, 9, 8, seed=25)
    places = wk.box_to_matrix(boxes, (9, 8), angle=20.0)
    for dtype, interpolation in product((torch.float64, torch.float32), INTERPOLATIONS):
        rule = {"interpolation": interpolation}
        some = [t.to(dtype) for t in (pictures, boxes, turns, patch, mask)]
        words = f"{dtype} {interpolation}"
        for antialias in (False, True):
            yield (
                f"crop {words} {antialias}",
                lambda s=some, r=rule, a=antialias: with_gradients(
                    lambda i, b: wk.crop_patches(i, b, index, (11, 10), antialias=a, **r), *s[:2]
                ),
            )
        yield (
            f"paste {words}",
            lambda s=some, r=rule: with_gradients(
                lambda i, p, m: wk.paste_patches(i, p, places, index, mask=m, opacity=0.8, **r),
                s[0], s[3], s[4],
            ),
        )  # fmt: skip
        for overlap, masked in product(("last", "sequential"), (False, True)):
            yield (
                f"transform {words} {overlap} {masked}",
                lambda s=some, r=rule, o=overlap, k=masked: with_gradients(
                    lambda i, m: wk.transform_patches(
                        i, s[1], m, index, overlap=o, mask=s[4] if k else None, **r
                    ),
                    s[0],
                    s[2],
                ),
            )


def others() -> Iterator[tuple]:
    """Matrices, lookups and sampled pixels."""
    points = drawn(5, 4, 2, seed=30, scale=40.0)
    targets = points + drawn(5, 4, 2, seed=31)
    theta = drawn(4, 2, 3, seed=32) - 0.5
    rows, where = drawn(9, 4, seed=33), drawn(6, seed=34, scale=8.0)
    image = drawn(2, 3, 20, 21, seed=35)
    spread = drawn(6, 9, seed=36)
    yield (
        "rotation",
        lambda: with_gradients(lambda a: wk.rotation_matrix((3.0, 4.0), a, 1.2), where),
    )
    yield (
        "affine matrix",
        lambda: with_gradients(lambda a: wk.affine_matrix(angle=a, shear=3), where),
    )
    yield (
        "affine from points",
        lambda: with_gradients(wk.affine_from_points, points[:, :3], targets[:, :3]),
    )
    yield (
        "perspective from points",
        lambda: with_gradients(wk.perspective_from_points, points, targets),
    )
    yield "theta", lambda: with_gradients(lambda t: wk.from_theta(t, (9, 8), (7, 6)), theta)
    yield "invert", lambda: with_gradients(wk.invert, theta)
    yield "lookup", lambda: with_gradients(wk.indexing.linear_lookup, rows, where)
    yield "superposition", lambda: with_gradients(wk.indexing.superposition_lookup, rows, spread)
    yield "assign", lambda: with_gradients(wk.indexing.assign, rows, where, drawn(6, 4, seed=37))
    yield "pixels", lambda: with_gradients(wk.sample_pixels, image, points[:2].reshape(2, 4, 2))


def calls() -> Iterator[tuple[str, Call]]:
    """Every call of the table, with its name."""
    yield from warps("auto", ("float64", "float32", "uint8"), ("three", "last", "single"))
    yield from warps("auto", ("float32",), ("nine", "expanded"), FEW)
    yield from warps("auto", ("float16", "bfloat16", "int16", "uint16", "int64"), ("three",), FEW)
    yield from warps("reference", ("float64", "uint8"), ("three",), FEW)
    yield from warps("grid_sample", ("float64", "float32"), ("three",), FEW)
    if os.environ.get("TRITON_INTERPRET") == "1":
        yield from warps("cuda", ("float32",), ("single",), rules=[("bilinear", "constant")])
    yield from opencv()
    yield from averaged()
    yield from objects()
    yield from others()


def digest(tensors: list[Tensor]) -> str:
    """The result's hash, and one of all gradients."""
    return " ".join(hash_of(part) for part in (tensors[:1], tensors[1:]) if part)


def hash_of(tensors: list[Tensor]) -> str:
    """A hash of shapes, types and bits that does not depend on the memory format."""
    total = hashlib.sha256()
    for tensor in tensors:
        total.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        total.update(tensor.contiguous().view(torch.uint8).numpy().tobytes() if tensor.ndim else
                     repr(tensor.item()).encode())  # fmt: skip
    return total.hexdigest()[:16]


def results() -> dict[str, str]:
    """The digest of every call, or the text of its error."""
    digests = {}
    for name, call in calls():
        try:
            digests[name] = digest(call())
        except (ValueError, TypeError) as error:
            digests[name] = str(error)
    return digests


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--out", type=Path, help="write the digests to this file")
    group.add_argument("--compare", type=Path, help="list the calls that differ from this file")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    digests = results()
    if arguments.out:
        arguments.out.write_text(json.dumps(digests, indent=0))
        print(f"{len(digests)} calls")
        return
    before = json.loads(arguments.compare.read_text())
    changed = sorted(name for name in {*before, *digests} if before.get(name) != digests.get(name))
    for name in changed:
        print(f"{name}: {before.get(name)} -> {digests.get(name)}")
    print(f"{len(digests)} calls, {len(changed)} differ")
    raise SystemExit(bool(changed))


if __name__ == "__main__":
    main()
