"""Calls that reach every kernel of the native library, with hostile numbers.

Coordinates, matrices and pixels are huge, infinite or NaN, integers cover their whole range, and
images have one pixel or one row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch

import warpkit as wk
import warpkit.opencv as cv2
from scripts.commands.kernels.usual import (
    FISHEYE,
    FLOATS,
    HERE,
    LENS,
    TILTED,
    TYPES,
    VIEW,
    noise,
    pushed,
    seen,
    side_by_side,
)
from warpkit.engine.arithmetic.opencv_lenses import Criteria
from warpkit.engine.cpu import (
    fits,
    four_points,
    inverse,
    lens_fields,
    lens_inverses,
    maps,
    moments,
    pictures,
    similarity,
    transform,
)
from warpkit.engine.cpu.points import caller, codes_of, projector
from warpkit.engine.definitions.depth import KINDS, Depths
from warpkit.engine.definitions.rules import BORDERS, INTERPOLATIONS
from warpkit.engine.operators import sphere
from warpkit.engine.operators.depth import POINTS
from warpkit.engine.operators.jpeg import through_file
from warpkit.engine.operators.lens_field import Field
from warpkit.types import LensModel

HOSTILE = (0.0, -0.0, 1.0, -1.0, 0.5, 1e5, -3e9, 2.0**31, 2.0**31 - 1, -(2.0**31), 2.0**52, 2.0**63)
HOSTILE += (-(2.0**63), 1e-300, 1e30, -1e300, 5e-324, float("inf"), -float("inf"), float("nan"))
SHAPES = ((2, 5, 9, 11), (1, 1, 1, 1), (1, 3, 1, 70), (1, 4, 66, 5))
RESULT = (40, 37)
FILES = ((2, 3, 1, 1), (1, 3, 300, 5), (2, 1, 9, 67), (1, 3, 17, 18))
"""The second has two bands."""
MODELS: tuple[LensModel, ...] = ("brown", "fisheye")


def hostile(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Hostile numbers, all equally often; any integers for integer types."""
    if not dtype.is_floating_point:
        limits = torch.iinfo(dtype)
        return torch.randint(limits.min, limits.max, shape, dtype=torch.int64).to(dtype)
    return torch.tensor(HOSTILE, dtype=torch.float64)[torch.randint(len(HOSTILE), shape)].to(dtype)


def mixed(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Ordinary numbers, some of them replaced by hostile ones."""
    plain = noise(*shape, dtype=torch.float64) * 20 - 5
    return torch.where(torch.rand(shape) < 0.1, hostile(*shape), plain).to(dtype)


def arrays(*shape: int, kind: Any = np.float64) -> np.ndarray:
    """`hostile` as arrays; any integers for integer types."""
    kind = np.dtype(kind)
    if kind.kind == "f":
        with np.errstate(over="ignore"):
            return mixed(*shape).numpy().astype(kind)
    limits = np.iinfo(kind)
    return np.random.default_rng(0).integers(limits.min, limits.max, shape, kind, endpoint=True)


def hostile_calls() -> dict[str, Callable[[], Any]]:
    """All hostile calls by name."""
    calls: dict[str, Callable[[], Any]] = {}
    whole = (torch.int16, torch.uint16)
    for way, border, dtype, shape in product(INTERPOLATIONS, BORDERS, (*TYPES, *whole), SHAPES):
        if border == "transparent" and dtype not in FLOATS:
            continue  # like constant, with an integer background
        maker = way, border, dtype, shape
        calls[f"hostile {way} {border} {dtype} {shape}"] = lambda g=maker: warps(*g)
    for arithmetic, way, border, dtype in product(
        ("opencv4", "opencv5"), INTERPOLATIONS, BORDERS[:-1], TYPES
    ):
        options = HERE | {"interpolation": way, "border": border, "arithmetic": arithmetic}
        calls[f"hostile {arithmetic} {way} {border} {dtype}"] = partial(
            opencv_warps, dtype, options
        )
    for way, dtype, rule in product(
        ("nearest", "bilinear", "bicubic", "lanczos4", "area"),
        TYPES,
        ("exact", "opencv4", "opencv5", "pillow", "torchvision"),
    ):
        if (way, rule) == ("lanczos4", "torchvision"):
            continue  # torch does not have it
        for shape, size in product(SHAPES, ((1, 1), (1, 300), (23, 7))):
            options: dict[str, Any] = HERE | {"interpolation": way, "arithmetic": rule}
            calls[f"hostile resize {way} {dtype} {rule} {shape} {size}"] = (
                lambda d=dtype, s=shape, t=size, o=options: pushed(
                    lambda i: wk.resize(i, t, **o), mixed(*s, dtype=d)
                )
            )
    for dtype, shape in product((*TYPES, torch.float16), SHAPES):
        calls[f"hostile views {dtype} {shape}"] = lambda d=dtype, s=shape: views(s, d)
    for dtype, shape in product((*TYPES, *whole), SHAPES):
        calls[f"hostile side by side {dtype} {shape}"] = lambda d=dtype, s=shape: [
            side_by_side(mixed(*s, dtype=d), size) for size in ((1, 1), (1, 300), (33, 2), (23, 7))
        ]
    for dtype in FLOATS:
        for n in range(12):
            calls[f"hostile objects {dtype} {n}"] = lambda d=dtype, n=n: objects(d, n)
        calls[f"hostile sums {dtype}"] = lambda d=dtype: [sums(shape, d) for shape in SHAPES]
        calls[f"hostile matrices {dtype}"] = lambda d=dtype: [
            inverse.inverse_vjp(inverse.invert(m), mixed(40, rows, 3), d)
            for rows in (2, 3)
            for m in (hostile(40, rows, 3, dtype=d), mixed(40, rows, 3, dtype=d))
        ]
    for kind, channels, sides in product(pictures.TYPES, (1, 3, 4), ((1, 1), (1, 9), (33, 2))):
        picture = partial(arrays, *sides, channels, kind=kind)
        calls[f"hostile pictures {kind} {channels} {sides}"] = lambda p=picture: moved_pictures(p())
    for lens, n in product((LENS, FISHEYE), range(6)):
        calls[f"hostile lens {lens.model} {n}"] = lambda one=lens, n=n: mapped(one, n)
    calls["hostile maps"] = other_maps
    for model, opencv, n in product(MODELS, (False, True), range(4)):
        field, count = Field(model, RESULT, opencv), (5, 8, 12, 14)[n] if model == "brown" else 4
        make = partial(slopes, field, count, hostile if n else mixed)
        calls[f"hostile slopes {field} {n}"] = make
    for subsampling, shape in product(("4:2:0", "4:2:2", "4:4:4"), FILES):
        calls[f"hostile file {subsampling} {shape}"] = partial(files, subsampling, shape)
    for model, kind, inside in product(MODELS, KINDS, INTERPOLATIONS):
        one = Depths(kind, model, kind == "z", kind != "ray", (inside, 9, 11))
        calls[f"hostile depth {model} {kind} {inside}"] = partial(depths, one)
    for maker in (hostile, mixed):
        name = maker.__name__
        calls[f"hostile fits {name}"] = lambda g=maker: fitted(g)
        calls[f"hostile vectors {name}"] = lambda g=maker: vectors(g)
        calls[f"hostile transforms {name}"] = lambda g=maker: transforms(g)
        calls[f"hostile fisheye points {name}"] = lambda g=maker: fisheye_points(g)
        calls[f"hostile scenes {name}"] = lambda g=maker: scenes(g)
        for dtype in FLOATS:
            calls[f"hostile splat {name} {dtype}"] = lambda g=maker, d=dtype: [
                pushed(lambda p, f: wk.flow.splat(p, f).image, g(*s, dtype=d), g(s[0], *s[2:], 2))
                for s in SHAPES
            ]
            calls[f"hostile front {name} {dtype}"] = partial(fronts, maker, dtype)
            calls[f"hostile depth warp {name} {dtype}"] = partial(depth_warps, maker, dtype)
            calls[f"hostile align {name} {dtype}"] = lambda g=maker, d=dtype: wk.align(
                g(2, 2, 25, 33, dtype=d), g(2, 2, 25, 33, dtype=d), levels=2, steps=3
            )
        for way in INTERPOLATIONS:
            calls[f"hostile sphere {name} {way}"] = lambda g=maker, w=way: [
                pushed(lambda p, m: sphere.view(p, m, RESULT, w), mixed(3, *sides), g(2, 3, 3))
                for sides in ((1, 1), (1, 70), (40, 80))
            ]
    return calls


def warps(way: str, border: str, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    """One image under three kinds of map, with gradients."""
    last = torch.channels_last if torch.rand(()) < 0.5 else torch.contiguous_format
    options = HERE | {"interpolation": way, "border": border}
    if border == "transparent":
        options["background"] = mixed(*shape[:2], *RESULT, dtype=dtype)
    else:
        options["border_value"] = 3.5
    sized = options | {"size": RESULT, "inverse": True}
    for maker in (hostile, mixed):
        image = lambda maker=maker: maker(*shape, dtype=dtype).contiguous(memory_format=last)  # noqa: E731
        kind = torch.float32 if torch.rand(()) < 0.5 else torch.float64
        pushed(lambda *t: wk.warp_affine(*t, **sized), image(), maker(shape[0], 2, 3, dtype=kind))
        pushed(lambda *t: wk.warp_perspective(*t, **sized), image(), maker(shape[0], 3, 3))
        for relative in (False, True):
            pushed(
                lambda *t, r=relative: wk.remap(*t, relative=r, **options),
                image(), maker(shape[0], *RESULT, 2, dtype=kind),
            )  # fmt: skip


def views(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """Resizes of views whose numbers are apart, or which are halves."""
    plain = mixed(*shape, dtype=dtype)
    apart = mixed(*shape[:3], 3 * shape[3], dtype=dtype)[..., ::3]
    for image, size, way in product(
        (plain, apart, plain.mT.contiguous().mT), ((1, 300), (23, 7)), ("bilinear", "bicubic")
    ):
        for antialias in (True, False):
            wk.resize(image, size, interpolation=way, antialias=antialias, **HERE)


def opencv_warps(dtype: torch.dtype, options: dict[str, Any]) -> None:
    """Warps in OpenCV's arithmetic with hostile maps."""
    for shape, maker in product(SHAPES, (hostile, mixed)):
        image = maker(*shape, dtype=dtype)
        sized = options | {"size": RESULT, "inverse": True}
        wk.warp_affine(image, maker(2, 3), **sized)
        wk.warp_perspective(image, maker(3, 3), **sized)
        wk.remap(image, maker(*RESULT, 2, dtype=torch.float32), **options)
    picture = arrays(9, 11, 3, kind=str(dtype).removeprefix("torch."))
    fixed = arrays(*RESULT, 2, kind=np.int16), arrays(*RESULT, kind=np.uint16) % 1024
    flags = {"nearest": 0, "bilinear": 1, "bicubic": 2, "lanczos4": 4}[options["interpolation"]]
    borders = {name: code for code, name in enumerate(BORDERS)} | {"wrap": 3, "reflect_101": 4}
    cv2.remap(
        picture, *fixed, flags, None, borders[options["border"]], arithmetic=options["arithmetic"]
    )


def objects(dtype: torch.dtype, number: int) -> None:
    """Boxes and frames of objects, across the image's edge and anywhere."""
    maker = mixed if number % 2 else hostile
    channels, height, width = SHAPES[number % len(SHAPES)][1:]
    index = torch.tensor([0, 1, 1, 0, 0])
    corners = torch.rand(5, 2) * 60 - 20
    boxes = torch.cat((corners, corners + torch.rand(5, 2) * 40), 1).to(dtype)
    images, patches = mixed(2, channels, height, width), mixed(5, channels, 9, 11)
    for space, overlap in product(("theta", "pixel"), ("last", "sequential")):
        options: dict[str, Any] = {"space": space, "overlap": overlap, "border_value": 0.5}
        pushed(
            lambda p, m, o=options: wk.transform_patches(p, boxes, m, index, **o),
            images.to(dtype), maker(5, 2, 3, dtype=dtype),
        )  # fmt: skip
    for rows in (2, 3):
        pushed(
            lambda p, q, m, k: wk.paste_patches(p, q, m, index, mask=k, opacity=0.7),
            images.to(dtype), patches.to(dtype), maker(5, rows, 3, dtype=dtype),
            mixed(5, 1, 9, 11, dtype=dtype),
        )  # fmt: skip
    pushed(lambda p, b: wk.crop_patches(p, b, index, (7, 33)), images.to(dtype), boxes)


def sums(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """The moments of images."""
    image = lambda *s: mixed(*s, dtype=dtype)  # noqa: E731
    weight = image(shape[0], 1, *shape[2:])
    moments.first_sums(image(*shape), image(*shape), weight)
    three, rows = (image(*shape), image(*shape), image(*shape)), image(*shape[:2])
    for models in (0, 1):
        moments.second_sums(three, image(*shape), weight, rows, rows, 20.0, models)


def moved_pictures(picture: np.ndarray) -> None:
    """Pyramids, borders, rotations and rectangles of a picture (H, W, C)."""
    height, width = picture.shape[:2]
    for border in BORDERS[1:-1]:
        pictures.pyramid_down(picture, ((height + 1) // 2, (width + 1) // 2), border)
    pictures.pyramid_up(picture, (2 * height, 2 * width))
    for border in BORDERS[:-1]:
        pictures.framed(picture, (3, 4, 50, 6), border, picture[0, 0].copy())
    pictures.arranged(picture.transpose(1, 0, 2))
    if picture.dtype in (np.float32, np.float64, np.uint8):
        for whole in ((-3, 5), (2**31 - 40, -(2**31)), (10**6, -(10**6))):
            pictures.rectangle(picture, (20, 21), whole, np.array([0.3, 0.7], np.float32), False)


def mapped(lens: maps.PlainLens, number: int) -> None:
    """Maps and points of a lens with hostile parameters."""
    torch.manual_seed(number)
    lens = lens._replace(camera=mixed(4).tolist(), k=tuple(mixed(len(lens.k)).tolist()))
    view = tuple(mixed(9).tolist()) if number % 2 else VIEW
    for kind in maps.KINDS:
        maps.lens_map(lens, view, RESULT, kind)
    codes = {"projects": number % 2, "coefficients": len(lens.k)}
    for kind, error in product((np.float32, np.float64), (None, 1e-6)):
        points_of("undistorted_points", kind, mixed, error, **codes)


def other_maps() -> None:
    """Map formats, polar warps, lists of points, and perspectives."""
    kinds = "planes", "pairs", "fixed"
    one, other = (arrays(*RESULT, kind=np.float32) for _ in range(2))
    for before, after in product(kinds, kinds):
        maps.converted_map(*maps.converted_map(one, other, before), after)
    parts = arrays(*RESULT, kind=np.uint16) % 1024
    maps.converted_map(arrays(*RESULT, 2, kind=np.int16), parts, "planes")
    turns = arrays(40)
    maps.polar_map(arrays(2), turns, turns, arrays(50))
    for center in (arrays(2), hostile(2).numpy()):
        maps.map_from_polar(RESULT, 40, center, 0.5, 0.157)
    for n, kind in product((2, 3), (np.float32, np.float64)):
        p, matrix = arrays(70, n, kind=kind), arrays(n + 1, n + 1)
        caller("moved_points", p.dtype, channels=n)(p, matrix, p.shape, 70)
    maps.perspective_matrices(arrays(40, 4, 2, kind=np.float32), arrays(40, 4, 2, kind=np.float32))
    maps.affine_matrices(arrays(40, 3, 2, kind=np.float32), arrays(40, 3, 2, kind=np.float32))


def slopes(field: Field, count: int, maker: Callable[..., torch.Tensor]) -> None:
    """Lens maps and undistorted points of `count` coefficients, with the gradients of both."""
    inputs, needs = (maker(2, 4 + count), maker(2, 3, 3)), (True, True)
    points, rows = lens_fields.forward(field, *inputs)
    lens_fields.backward(field, rows, (maker(*points.shape),), inputs, needs)
    u, v, gx, gy = (maker(2, 1100) for _ in range(4))
    inputs = maker(2, 1, count), u, v, maker(2, 1, 3)
    roots, _ = lens_inverses.forward(field.model, *inputs)
    lens_inverses.backward(field.model, roots, (gx, gy), inputs, (True,) * 4)


def files(subsampling: str, shape: tuple[int, ...]) -> None:
    """JPEG files of bytes and of floats far outside [0, 1], and their gradient."""
    quality = torch.randint(1, 101, shape[:1], dtype=torch.int32)
    through_file(hostile(*shape, dtype=torch.uint8), quality, subsampling)
    for maker in (hostile, mixed):
        pushed(lambda i: through_file(i, quality, subsampling), maker(*shape, dtype=torch.float32))


def depths(options: Depths) -> None:
    """Points of depths and their gradients, with every number hostile in turn."""
    count = 4 if options.model == "fisheye" else 14
    for maker, dtype in product((hostile, mixed), FLOATS):
        rays = maker(2, 4) if options.pinhole else maker(2, 3, 9, 67)
        numbers = maker(2, 1, 9, 67, dtype=dtype)[:, 0], rays, maker(2, 3, 4), maker(2, 4 + count)
        leaves = [t.requires_grad_() for t in numbers]
        results = POINTS(options, *leaves, maker(2).abs())
        slopes = [maker(*t.shape) for t in results if t.is_floating_point()]
        torch.autograd.grad(results[: len(slopes)], leaves, slopes, allow_unused=True)


def depth_warps(maker: Callable[..., torch.Tensor], dtype: torch.dtype) -> None:
    """Pictures seen by depths, with every number hostile in turn."""
    for shape, model in product(SHAPES, MODELS):
        size, pose, k, camera = shape[2:], maker(2, 3, 4), maker(4), torch.eye(3).double()
        camera[[0, 1, 0, 1], [0, 1, 2, 2]] = 1e-300 + maker(4).abs()
        leaves = maker(*shape, dtype=dtype), maker(2, 1, *size, dtype=dtype), pose
        pushed(partial(seen, model), *leaves, camera, k)


def fronts(maker: Callable[..., torch.Tensor], dtype: torch.dtype) -> None:
    """The pixels in front, by hostile flows and depths."""
    for shape in SHAPES:
        flow, depth = maker(shape[0], *shape[2:], 2), maker(shape[0], 1, *shape[2:], dtype=dtype)
        pushed(
            lambda i, f=flow, d=depth: wk.flow.splat(i, f, mode="front", depth=d).image,
            maker(*shape, dtype=dtype),
        )  # fmt: skip


def fitted(maker: Callable[..., torch.Tensor]) -> None:
    """Matrices fitted to pairs of points."""
    for dtype in FLOATS:
        pairs, grad = (maker(40, 4, 2), maker(40, 4, 2)), maker(40, 3, 3)
        four_points.forward(dtype, *pairs)
        four_points.backward(dtype, None, (grad,), pairs, (True, True))
        for weights in (torch.ones(40, 9).double(), maker(40, 9)):
            similarity.forward(dtype, maker(40, 9, 2), maker(40, 9, 2), weights)
    fits.homography(maker(40, 8), maker(40, 9, 2), maker(40, 9, 2), 5)


def vectors(maker: Callable[..., torch.Tensor]) -> None:
    """Lengths and angles of vectors, and back."""
    for kind in (np.float32, np.float64):
        with np.errstate(over="ignore"):
            one, other = (maker(40, 70).numpy().astype(kind) for _ in range(2))
        for degrees in (False, True):
            cv2.cartToPolar(one, other, angleInDegrees=degrees)
            cv2.polarToCart(one, other, angleInDegrees=degrees)
            cv2.polarToCart(one, other * kind(0), angleInDegrees=degrees)


def transforms(maker: Callable[..., torch.Tensor]) -> None:
    """A matrix for the channels of every pixel."""
    for kind, (channels, rows, columns), arithmetic in product(
        pictures.TYPES, ((1, 1, 1), (2, 9, 3), (3, 3, 4), (4, 4, 4)), ("opencv4", "opencv5")
    ):
        points = arrays(20, 70, channels, kind=kind)
        form = points.shape, (70 * channels, channels, 1), points.dtype, (rows, columns)
        transform.caller(*form, arithmetic)(points, maker(rows, columns).double().numpy())


def fisheye_points(maker: Callable[..., torch.Tensor]) -> None:
    """Points distorted and undistorted by a fisheye."""
    for kind, projects in product((np.float32, np.float64), (0, 1)):
        points_of("fisheye_shown", kind, maker)
        points_of("fisheye_found", kind, maker, 1e-8, projects=projects)


def points_of(task: str, kind: Any, made: Any, error: float | None = None, **codes: int) -> None:
    """A list of points, through a lens whose numbers are made so."""
    p, steps = arrays(70, 2, kind=kind), codes_of(Criteria(10, error))
    caller(task, p.dtype, **steps, **codes)(p, made(46).double().numpy(), p.shape, 70)


def scenes(maker: Callable[..., torch.Tensor]) -> None:
    """Projected points, with their derivatives."""
    for kind, lens, turned in product((np.float32, np.float64), (TILTED, FISHEYE), (False, True)):
        task = "fisheye_projected" if lens is FISHEYE else "projected"
        form = np.dtype(kind), 15 if lens is FISHEYE else 24
        run = projector(task, *form, coefficients=len(lens.k), projects=int(turned))
        run(arrays(70, 3, kind=kind), maker(61).double().numpy(), (70, 2), 70)
