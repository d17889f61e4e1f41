"""Calls that reach every kernel of the native library, with ordinary numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch

import warpkit as wk
import warpkit.opencv as wcv
from warpkit.engine.cpu import fits, inverse, maps, moments, pictures
from warpkit.engine.definitions.rules import BORDERS, INTERPOLATIONS
from warpkit.engine.definitions.sweep import MEASURES
from warpkit.types import Border, DepthKind, Filter, Interpolation, LensModel, Measure


def noise(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    values = torch.rand(shape, dtype=torch.float64)
    return (values if dtype.is_floating_point else values * 256).to(dtype)


def pushed(function: Callable[..., torch.Tensor], *leaves: torch.Tensor) -> None:
    """A call, and its gradient if it has one."""
    leaves = tuple(t.requires_grad_() if t.is_floating_point() else t for t in leaves)
    out = function(*leaves)
    if out.requires_grad:
        out.backward(noise(*out.shape, dtype=out.dtype))


def lenses_of(model: LensModel, count: int) -> None:
    """A lens map, distorted and undistorted points, and the gradients of both."""
    k, camera = 0.02 * noise(count).double(), torch.tensor([[50.0, 0, 31], [0, 52, 22], [0, 0, 1]])
    pushed(lambda c, k: wk.camera.undistort_map(c, k, (45, 53), model=model), camera.double(), k)
    pushed(
        lambda p, k: wk.camera.undistort_points(p, camera.double(), k, model=model)[0],
        noise(2100, 2).double() * 50, k.detach(),
    )  # fmt: skip


def depths_of(model: LensModel, kind: DepthKind) -> None:
    """The points of depths in another camera, and their gradients."""
    camera = torch.tensor([[50.0, 0, 31], [0, 52, 22], [0, 0, 1]]).double()
    pose = torch.eye(4).double()
    pose[0, 3], k = 0.2, 0.02 * noise(4).double()
    pushed(
        lambda d, p, c, k: wk.camera.depth_points(
            d, c, p, other_matrix=c, distortion=k, other_distortion=k, model=model, kind=kind
        ).points.nan_to_num(),
        noise(2, 1, 45, 53).double() + 0.5, pose, camera, k,
    )  # fmt: skip


def seen(model: LensModel, image: Any, depth: Any, pose: Any, camera: Any, k: Any) -> torch.Tensor:
    """A picture seen by depths through a lens with this camera and coefficients."""
    options: dict[str, Any] = {"other_matrix": camera, "other_distortion": k, "model": model}
    return wk.camera.warp_depth(image, depth, camera, pose, **options).image


def depth_warps_of(model: LensModel, dtype: torch.dtype) -> None:
    """A picture seen by depths through a lens, and its gradients."""
    camera = torch.tensor([[50.0, 0, 31], [0, 52, 22], [0, 0, 1]]).double()
    k = 0.02 * noise(4).double()
    pose = torch.eye(4).double().repeat(2, 1, 1)
    pose[:, 0, 3] = 0.2
    image, depth = noise(2, 3, 45, 53, dtype=dtype), noise(2, 1, 45, 53).to(dtype) + 0.5
    pushed(partial(seen, model), image, depth, pose, camera, k)


def correlations_of(radius: int, border: Border, with_flow: bool) -> None:
    """Features around every pixel's place, and their gradients."""
    flow = (8 * noise(2, 21, 37, 2),) if with_flow else ()
    pushed(
        lambda *tensors: wk.flow.correlation(*tensors, radius=radius, border=border),
        noise(2, 19, 21, 37), noise(2, 19, 25, 33), *flow,
    )  # fmt: skip


def sweeps_of(measure: Measure, border: Border | None, model: LensModel) -> None:
    """Features compared at depths, of planes or of pixels, and their gradients."""
    camera = torch.tensor([[50.0, 0, 18], [0, 52, 10], [0, 0, 1]]).double()
    pose, k = torch.eye(4).double().repeat(2, 1, 1), 0.02 * noise(4).double()
    pose[:, 0, 3] = torch.tensor([0.2, -0.2])
    for shape in ((3, 1, 1), (3, 21, 37)):
        pushed(
            lambda r, s, d, p, c, k: wk.camera.plane_sweep(
                r, s, d, c, p, c[None], source_distortions=k[None], model=model, measure=measure,
                border=border, groups=3,
            ).cost,
            noise(21, 21, 37), noise(2, 21, 25, 33), noise(*shape).double() + 0.5, pose,
            camera.clone(), k,
        )  # fmt: skip


def spheres_of(interpolation: Interpolation) -> None:
    """A view of a sphere that shows a pole, and its gradients to the picture and the rotation."""
    turn = torch.linalg.matrix_exp(torch.tensor([[0.0, 0.2, 0], [-0.2, 0, 1.3], [0, -1.3, 0]]))
    pushed(
        lambda p, r: wk.camera.from_sphere(
            p, (70, 90), field_of_view=80.0, rotation=r, interpolation=interpolation
        ),
        noise(3, 40, 80), turn.double(),
    )  # fmt: skip


def vectors_of(kind: type[np.floating]) -> None:
    """Vectors as lengths and angles, and angles as vectors."""
    x, y, lengths, angles = noise(4, 200, 300).numpy().astype(kind)
    wcv.cartToPolar(x - kind(0.5), y - kind(0.5))
    wcv.polarToCart(lengths * 6, angles * 6)


FLOATS = torch.float32, torch.float64
TYPES = *FLOATS, torch.uint8
LENS = maps.PlainLens("brown", (50.0, 52.0, 31.0, 22.0), (0.1, -0.05, 0.01, 0.02, 0.03))
TILTED = LENS._replace(k=(0.01,) * 14, tilt=(1, 0, 0.1, 0, 1, 0.1, 0.1, 0.2, 1))
FISHEYE = LENS._replace(model="fisheye", k=(0.1, -0.05, 0.01, 0.02))
POSE = np.array((0.1, -0.2, 0.3)), np.array((0.2, 0.1, 4.0))
CAMERA = np.array([[50.0, 0, 31], [0, 52, 22], [0, 0, 1]])
VIEW = tuple(np.linalg.inv([[45.0, 0, 30], [0, 44, 21], [0, 0, 1]]).ravel().tolist())
HERE: dict[str, Any] = {"backend": "cpu"}


def side_by_side(image: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    """The bilinear resize of OpenCV's wheels, for interleaved channels."""
    image = image.contiguous(memory_format=torch.channels_last)
    return wk.resize(image, size, interpolation="bilinear", arithmetic="opencv5_ipp", **HERE)


def usual_calls() -> dict[str, Callable[[], Any]]:
    """All ordinary calls by name."""
    turned = wk.rotation_matrix((26.0, 22.0), 20.0, 1.2).double()
    tilted = torch.cat((turned, torch.tensor([[0.001, -0.002, 1.0]]).double()))
    field = noise(40, 70, 2) * 60 - 5
    calls: dict[str, Callable[[], Any]] = {}
    for way, border, dtype in product(INTERPOLATIONS, BORDERS[:-1], TYPES):
        options: dict[str, Any] = HERE | {"interpolation": way, "border": border}
        image, name = noise(2, 3, 45, 53, dtype=dtype), f"{way} {border} {dtype}"
        sized = options | {"size": (40, 70)}
        calls[f"affine {name}"] = lambda i=image, o=sized: pushed(
            lambda *t: wk.warp_affine(*t, **o), i, turned.clone()
        )
        calls[f"perspective {name}"] = lambda i=image, o=sized: pushed(
            lambda *t: wk.warp_perspective(*t, **o), i, tilted.clone()
        )
        calls[f"remap {name}"] = lambda i=image, o=options: pushed(
            lambda *t: wk.remap(*t, **o), i, field.clone()
        )
        for arithmetic in ("opencv4", "opencv5"):
            plain: dict[str, Any] = sized | {"arithmetic": arithmetic}
            calls[f"{arithmetic} {name}"] = lambda i=image, o=plain: (
                wk.warp_affine(i, turned, **o),
                wk.warp_perspective(i, tilted, **o),
            )
    for way, dtype, rule in product(
        ("nearest", "bilinear", "bicubic", "lanczos4", "area"),
        TYPES,
        ("exact", "opencv4", "opencv5", "pillow"),
    ):
        for size in ((30, 31), (60, 71)):
            calls[f"resize {way} {dtype} {rule} {size}"] = lambda w=way, d=dtype, r=rule, s=size: (
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
        calls[f"transform_patches {dtype}"] = lambda i=image, b=boxes, t=theta: pushed(
            lambda p, m: wk.transform_patches(p, b, m, index, space="theta", border_value=0.5),
            i(2, 3, 45, 53), t,
        )  # fmt: skip
        calls[f"paste_patches {dtype}"] = lambda i=image, b=boxes: pushed(
            lambda p, q, m: wk.paste_patches(
                p, q, wk.box_to_matrix(b, (9, 11), angle=20.0), index, mask=m
            ),
            i(2, 3, 45, 53), i(3, 3, 9, 11), i(1, 9, 11),
        )  # fmt: skip
        calls[f"crop_patches {dtype}"] = lambda i=image, b=boxes: pushed(
            lambda p, q: wk.crop_patches(p, q, index, (40, 37)), i(2, 3, 45, 53), b.clone()
        )
        calls[f"splat {dtype}"] = lambda i=image: pushed(
            lambda p, f: wk.flow.splat(p, 9 * f).image, i(2, 3, 45, 53), i(2, 45, 53, 2)
        )
        calls[f"sums {dtype}"] = lambda i=image: (
            moments.first_sums(i(2, 3, 45, 53), i(2, 3, 45, 53), i(2, 1, 45, 53)),
            moments.second_sums(
                (i(2, 3, 45, 53), i(2, 3, 45, 53), i(2, 3, 45, 53)), i(2, 3, 45, 53),
                i(2, 1, 45, 53), i(2, 3), i(2, 3), 20.0, 1,
            ),
        )  # fmt: skip
        calls[f"matrices {dtype}"] = lambda i=image, d=dtype: [
            inverse.inverse_vjp(inverse.invert(i(5, rows, 3)), i(5, rows, 3).double(), d)
            for rows in (2, 3)
        ]
    for kind, channels in product(pictures.TYPES, (1, 3, 4)):
        picture = (noise(90, 53, channels).numpy() * 250).astype(kind)
        name, fill = f"{kind} {channels}", picture[0, 0].copy()
        calls[f"pyramids {name}"] = lambda p=picture: (
            pictures.pyramid_down(p, (45, 27), "reflect_101"),
            pictures.pyramid_up(p, (180, 106)),
        )
        calls[f"moved {name}"] = lambda p=picture, f=fill: (
            [pictures.framed(p, (3, 4, 5, 6), border, f) for border in BORDERS[:-1]]
            + [pictures.arranged(p.transpose(1, 0, 2))]
        )
        if kind in (np.float32, np.float64, np.uint8):
            calls[f"rectangle {name}"] = lambda p=picture: [
                pictures.rectangle(p, (70, 21), (-3, 5), np.array([0.3, 0.7], np.float32), floating)
                for floating in ({False, p.dtype == np.uint8})
            ]
    for name, lens in (("brown", LENS), ("fisheye", FISHEYE)):
        calls[f"lens_map {name}"] = lambda lens=lens: [
            maps.lens_map(lens, VIEW, (45, 53), kind) for kind in maps.KINDS
        ]
    one, other = noise(45, 53).numpy() * 50, noise(45, 53).numpy() * 50
    calls["converted"] = lambda: [
        maps.converted_map(*maps.converted_map(one, other, before), kind)
        for before, kind in product(("planes", "pairs", "fixed"), ("planes", "pairs", "fixed"))
    ]
    angles, center = np.arange(40) / 40 * 6.28, np.array([20.3, 21.7])
    calls["polar"] = lambda: (
        maps.polar_map(center, np.cos(angles), np.sin(angles), np.arange(50) * 0.5),
        maps.map_from_polar((45, 53), 40, center, 0.5, 0.157),
    )
    calls["moved points"] = lambda: [
        wcv.perspectiveTransform(noise(2100, 1, n).to(kind), noise(n + 1, n + 1).double())
        for n in (2, 3)
        for kind in (torch.float32, torch.float64)
    ]
    calls["undistorted points"] = lambda: [
        wcv.undistortPoints(noise(2100, 2).to(kind) * 50, CAMERA, k, None, None, view, criteria)
        for kind in (torch.float32, torch.float64)
        for k in (np.array(LENS.k), np.array(TILTED.k))
        for criteria in (None, (2, 0, 1e-6))
        for view in (None, CAMERA)
    ]
    calls["perspectives"] = lambda: maps.perspective_matrices(
        noise(5, 4, 2).numpy() * 50, noise(5, 4, 2).numpy() * 50
    )
    calls["fisheye points"] = lambda: [
        function(noise(2100, 2).to(kind) * 50, CAMERA, np.array(FISHEYE.k))
        for kind in (torch.float32, torch.float64)
        for function in (wcv.fisheye.distortPoints, wcv.fisheye.undistortPoints)
    ]
    calls["scenes"] = lambda: [
        function(noise(2100, 1, 3).to(kind), *POSE, CAMERA, np.array(lens.k), None, extra)
        for kind in (torch.float32, torch.float64)
        for function, lens, extra in (
            (wcv.projectPoints, LENS, None),
            (wcv.projectPoints, TILTED, None),
            (wcv.fisheye.projectPoints, FISHEYE, 0.1),
        )
    ]
    models: tuple[tuple[LensModel, int], ...] = (("brown", 14), ("fisheye", 4))
    for model, count in models:
        calls[f"lenses {model}"] = partial(lenses_of, model, count)
    calls["fits"] = lambda: (
        pushed(wk.perspective_from_points, *(noise(3, 4, 2).double() * 50 for _ in range(2))),
        wk.similarity_from_points(noise(3, 9, 2), noise(3, 9, 2)),
        fits.homography(noise(3, 8).double(), noise(3, 9, 2).double(), noise(3, 9, 2).double(), 5),
    )
    for dtype in FLOATS:
        calls[f"align {dtype}"] = lambda d=dtype: wk.align(
            noise(2, 2, 45, 53, dtype=d), noise(2, 2, 45, 53, dtype=d), levels=1, steps=3
        )
    for dtype in ("uint8", "int16", "uint16", "float32", "float64"):
        calls[f"transform {dtype}"] = lambda d=dtype: [
            wcv.transform(
                (noise(90, 31, n).numpy() * 250).astype(d), noise(rows, n + 1).double().numpy()
            )
            for n, rows in ((2, 2), (3, 3), (3, 1), (4, 4), (5, 2))
        ]
    for kind in (np.float32, np.float64):
        calls[f"vectors {kind}"] = partial(vectors_of, kind)
    calls["affines"] = lambda: maps.affine_matrices(
        noise(5, 3, 2).numpy() * 50, noise(5, 3, 2).numpy() * 50
    )
    for dtype in (torch.float32, torch.uint16, torch.int16):
        calls[f"cells {dtype}"] = lambda d=dtype: wcv.resize(
            noise(180, 212, 3, dtype=d).numpy(), (106, 90), interpolation=wcv.INTER_AREA
        )
    for dtype, channels in product((*TYPES, torch.int16, torch.uint16), (1, 2, 3, 4)):
        calls[f"side by side {dtype} {channels}"] = lambda d=dtype, c=channels: [
            side_by_side(noise(2, c, 90, 106, dtype=d), size)
            for size in ((45, 53), (60, 31), (30, 171))
        ]
    ways: tuple[tuple[Filter, bool], ...]
    ways = (("bilinear", True), ("bilinear", False), ("bicubic", True))
    for way, antialias in ways:
        for layout in (torch.contiguous_format, torch.channels_last):
            calls[f"torch {way} {antialias} {layout}"] = lambda w=way, a=antialias, m=layout: (
                wk.resize(
                    noise(2, 3, 90, 106, dtype=torch.uint8).contiguous(memory_format=m),
                    (60, 71), interpolation=w, antialias=a, arithmetic="torchvision",
                )
            )  # fmt: skip
    for dtype, antialias in product((*TYPES, torch.float16), (True, False)):
        calls[f"views {dtype} {antialias}"] = lambda d=dtype, a=antialias: [
            wk.resize(image, size, antialias=a, **HERE)
            for image in (noise(2, 3, 53, 90, dtype=d).mT, noise(2, 3, 90, 106, dtype=d)[..., ::2])
            for size in ((45, 31), (120, 61))
        ]
    for way in INTERPOLATIONS:
        calls[f"sphere {way}"] = lambda w=way: spheres_of(w)
    for subsampling, channels in product(("4:2:0", "4:2:2", "4:4:4"), (1, 3)):
        calls[f"file {subsampling} {channels}"] = lambda s=subsampling, c=channels: pushed(
            wk.attacks.jpeg(60, subsampling=s), noise(2, c, 45, 53)
        )
    for model, kind in product(("brown", "fisheye"), ("z", "ray", "inverse")):
        calls[f"depth {model} {kind}"] = lambda m=model, k=kind: depths_of(m, k)
    for model, dtype in product(("brown", "fisheye"), FLOATS):
        calls[f"depth warp {model} {dtype}"] = lambda m=model, t=dtype: depth_warps_of(m, t)
    for dtype in FLOATS:
        calls[f"front {dtype}"] = lambda t=dtype: pushed(
            lambda i: (
                wk.flow.splat(
                    i,
                    9 * noise(2, 45, 53, 2, dtype=t),
                    mode="front",
                    depth=noise(2, 1, 45, 53, dtype=t),
                ).image
            ),
            noise(2, 3, 45, 53, dtype=t),
        )
    for radius, border, with_flow in (
        (4, "constant", True), (2, "replicate", False), (9, "reflect", True),
    ):  # fmt: skip
        calls[f"correlation {radius}"] = lambda r=radius, b=border, m=with_flow: correlations_of(
            r, b, m
        )
    for n, measure in enumerate(MEASURES):
        border, model = (None, "constant", "wrap")[n % 3], ("brown", "fisheye")[n % 2]
        calls[f"sweep {measure}"] = lambda m=measure, b=border, o=model: sweeps_of(m, b, o)
    return calls
