"""Calls that reach every kernel of the native library, with numbers that make sense."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import torch

import warpkit as wk
from warpkit.engine.arithmetic.opencv_lenses import Criteria
from warpkit.engine.backends.cpu import inverse, maps, moments, pictures
from warpkit.engine.sampling.rules import BORDERS, INTERPOLATIONS


def noise(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    made = torch.rand(shape, dtype=torch.float64)
    return (made if dtype.is_floating_point else made * 256).to(dtype)


def pushed(function: Callable[..., torch.Tensor], *leaves: torch.Tensor) -> None:
    """A call and its gradient, where it has one."""
    leaves = tuple(t.requires_grad_() if t.is_floating_point() else t for t in leaves)
    out = function(*leaves)
    if out.requires_grad:
        out.backward(noise(*out.shape, dtype=out.dtype))


FLOATS = torch.float32, torch.float64
TYPES = *FLOATS, torch.uint8
LENS = maps.PlainLens("brown", (50.0, 52.0, 31.0, 22.0), (0.1, -0.05, 0.01, 0.02, 0.03))
FISHEYE = LENS._replace(model="fisheye", k=(0.1, -0.05, 0.01, 0.02))
VIEW = tuple(np.linalg.inv([[45.0, 0, 30], [0, 44, 21], [0, 0, 1]]).ravel().tolist())
HERE = {"backend": "cpu"}


def usual_calls() -> dict[str, Callable[[], Any]]:
    """By their names."""
    turned = wk.rotation_matrix((26.0, 22.0), 20.0, 1.2).double()
    tilted = torch.cat((turned, torch.tensor([[0.001, -0.002, 1.0]]).double()))
    field = noise(40, 70, 2) * 60 - 5
    made: dict[str, Callable[[], Any]] = {}
    for way, border, dtype in product(INTERPOLATIONS, BORDERS[:-1], TYPES):
        options = HERE | {"interpolation": way, "border": border}
        image, name = noise(2, 3, 45, 53, dtype=dtype), f"{way} {border} {dtype}"
        size = HERE | {"size": (40, 70), **options}
        made[f"affine {name}"] = lambda i=image, o=size: pushed(
            lambda *t: wk.warp_affine(*t, **o), i, turned.clone()
        )
        made[f"perspective {name}"] = lambda i=image, o=size: pushed(
            lambda *t: wk.warp_perspective(*t, **o), i, tilted.clone()
        )
        made[f"remap {name}"] = lambda i=image, o=options: pushed(
            lambda *t: wk.remap(*t, **o), i, field.clone()
        )
        for arithmetic in ("opencv4", "opencv5"):
            plain = size | {"arithmetic": arithmetic}
            made[f"{arithmetic} {name}"] = lambda i=image, o=plain: (
                wk.warp_affine(i, turned, **o),
                wk.warp_perspective(i, tilted, **o),
            )
    for way, dtype, rule in product(
        ("nearest", "bilinear", "bicubic", "lanczos4", "area"),
        TYPES,
        ("exact", "opencv4", "opencv5", "pillow"),
    ):
        for size in ((30, 31), (60, 71)):
            made[f"resize {way} {dtype} {rule} {size}"] = lambda w=way, d=dtype, r=rule, s=size: (
                pushed(
                    lambda t: wk.resize(t, s, interpolation=w, arithmetic=r, **HERE),
                    noise(2, 3, 45, 53, dtype=d),
                )
            )
    index = torch.tensor([0, 1, 1])
    for dtype in FLOATS:
        image = lambda *s, d=dtype: noise(*s, dtype=d)  # noqa: E731
        boxes = torch.tensor([[3.0, 4, 30, 33], [10, 8, 50, 44], [-5, 20, 20, 60]], dtype=dtype)
        theta = torch.eye(2, 3, dtype=dtype) + 0.2 * noise(3, 2, 3, dtype=dtype)
        made[f"transform_patches {dtype}"] = lambda i=image, b=boxes, t=theta: pushed(
            lambda p, m: wk.transform_patches(p, b, m, index, space="theta", border_value=0.5),
            i(2, 3, 45, 53), t,
        )  # fmt: skip
        made[f"paste_patches {dtype}"] = lambda i=image, b=boxes: pushed(
            lambda p, q, m: wk.paste_patches(
                p, q, wk.box_to_matrix(b, (9, 11), angle=20.0), index, mask=m
            ),
            i(2, 3, 45, 53), i(3, 3, 9, 11), i(1, 9, 11),
        )  # fmt: skip
        made[f"crop_patches {dtype}"] = lambda i=image, b=boxes: pushed(
            lambda p, q: wk.crop_patches(p, q, index, (40, 37)), i(2, 3, 45, 53), b.clone()
        )
        made[f"splat {dtype}"] = lambda i=image: pushed(
            lambda p, f: wk.flow.splat(p, 9 * f).image, i(2, 3, 45, 53), i(2, 45, 53, 2)
        )
        made[f"sums {dtype}"] = lambda i=image: (
            moments.first_sums(i(2, 3, 45, 53), i(2, 3, 45, 53), i(2, 1, 45, 53)),
            moments.second_sums(
                (i(2, 3, 45, 53), i(2, 3, 45, 53), i(2, 3, 45, 53)), i(2, 3, 45, 53),
                i(2, 1, 45, 53), i(2, 3), i(2, 3), 20.0, 1,
            ),
        )  # fmt: skip
        made[f"matrices {dtype}"] = lambda i=image, d=dtype: [
            inverse.inverse_vjp(inverse.invert(i(5, rows, 3)), i(5, rows, 3).double(), d)
            for rows in (2, 3)
        ]
    for kind, channels in product(pictures.TYPES, (1, 3, 4)):
        picture = (noise(90, 53, channels).numpy() * 250).astype(kind)
        name, fill = f"{kind} {channels}", picture[0, 0].copy()
        made[f"pyramids {name}"] = lambda p=picture: (
            pictures.pyramid_down(p, (45, 27), "reflect_101"),
            pictures.pyramid_up(p, (180, 106)),
        )
        made[f"moved {name}"] = lambda p=picture, f=fill: (
            [pictures.framed(p, (3, 4, 5, 6), border, f) for border in BORDERS[:-1]]
            + [pictures.arranged(p.transpose(1, 0, 2))]
        )
        if kind in (np.float32, np.float64, np.uint8):
            made[f"rectangle {name}"] = lambda p=picture: [
                pictures.rectangle(p, (70, 21), (-3, 5), np.array([0.3, 0.7], np.float32), floating)
                for floating in ({False, p.dtype == np.uint8})
            ]
    for name, lens in (("brown", LENS), ("fisheye", FISHEYE)):
        made[f"lens_map {name}"] = lambda lens=lens: [
            maps.lens_map(lens, VIEW, (45, 53), kind) for kind in maps.KINDS
        ]
        made[f"points {name}"] = lambda lens=lens: [
            maps.undistorted_points((noise(2100, 2).numpy() * 50).astype(k), lens, criteria, view)
            for k in (np.float32, np.float64)
            for criteria in (Criteria(5, None), Criteria(None, 1e-6))
            for view in (None, VIEW)
        ]
    one, other = noise(45, 53).numpy() * 50, noise(45, 53).numpy() * 50
    made["converted"] = lambda: [
        maps.converted_map(*maps.converted_map(one, other, before), kind)
        for before, kind in product(("planes", "pairs", "fixed"), ("planes", "pairs", "fixed"))
    ]
    angles, center = np.arange(40) / 40 * 6.28, np.array([20.3, 21.7])
    made["polar"] = lambda: (
        maps.polar_map(center, np.cos(angles), np.sin(angles), np.arange(50) * 0.5),
        maps.map_from_polar((45, 53), 40, center, 0.5, 0.157),
    )
    made["moved points"] = lambda: [
        maps.moved_points(noise(2100, n).numpy().astype(kind), noise(n + 1, n + 1).double().numpy())
        for n in (2, 3)
        for kind in (np.float32, np.float64)
    ]
    made["perspectives"] = lambda: maps.perspective_matrices(
        noise(5, 4, 2).numpy() * 50, noise(5, 4, 2).numpy() * 50
    )
    return made
