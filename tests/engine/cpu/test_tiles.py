"""The native kernels over tiles, strips and bands of all kinds, against the reference."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import warpkit as wk
from tests.support.inputs import noise
from tests.support.tolerances import TOLERANCE
from warpkit.engine.cpu import backward_schedule, calls, launch, warp_calls
from warpkit.engine.cpu.backward_schedule import Image, by_strips
from warpkit.engine.cpu.warp_calls import warp_shapes
from warpkit.engine.definitions.rules import BORDERS, INTERPOLATIONS

FILLED = [border for border in BORDERS if border != "transparent"]


def drawn_points(draw: random.Random, size: tuple[int, int], scale: float, dtype: torch.dtype):
    """A rotated field of points with noise, some of which are NaN or infinite."""
    angle, (h, w) = draw.uniform(0, 7), size
    turn = torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    points = wk.pixel_grid(size).double() @ (scale * turn.double()).T
    points = points + draw.uniform(-20, 60) + noise(h, w, 2, seed=draw.randrange(99))
    odd = torch.tensor([math.nan, math.inf, -(2.0**31), 2.0**31 - 1, 1e20])
    if draw.random() < 0.3:
        points.view(-1)[torch.randint(0, points.numel(), (5,))] = odd.double()
    return points.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_agree_over_tiles_of_all_kinds(dtype):
    # whole tiles, tiles across a border, boxes far larger than a tile, row ends of every length
    draw = random.Random(5)
    for n in range(180):
        border, scale = FILLED[n % len(FILLED)], draw.choice([0.3, 1, 1, 5, 200, 1e4])
        shape = [draw.choice([1, 2, 15, 33, 70, 130]) for _ in range(2)]
        image = noise(draw.choice([1, 2]), draw.choice([1, 3, 4, 9]), *shape, dtype=dtype, seed=n)
        if draw.random() < 0.3:
            image = image.contiguous(memory_format=torch.channels_last)
        size = draw.choice([1, 20, 33, 70]), draw.choice([1, 9, 16, 32, 47, 100])
        # with weights of both signs, an infinite fill gives NaN or infinity by the order of the sum
        value = draw.choice([0.25, math.nan, math.inf if n < 120 else -0.5])
        points = drawn_points(draw, size, scale, torch.float32 if n % 2 else torch.float64)
        options = {"border": border, "border_value": value}
        options["interpolation"] = ("bilinear", "bicubic", "lanczos4")[n // 60]
        got = wk.remap(image, points, backend="cpu", **options)
        wanted = wk.remap(image, points, backend="reference", **options)
        atol = TOLERANCE[f"cpu {dtype}"]
        near = {"atol": atol, "rtol": atol, "equal_nan": True}
        torch.testing.assert_close(got, wanted, **near, msg=lambda text, n=n: f"case {n}: {text}")


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.float32, torch.float64])
def test_nearest_gives_the_references_pixels_in_every_layout(dtype):
    draw = random.Random(6)
    for n in range(60):
        border, scale = BORDERS[n % len(BORDERS)], draw.choice([0.3, 1, 1, 5, 1e4])
        shape = draw.choice([1, 3]), *(draw.choice([1, 2, 15, 33, 70]) for _ in range(2))
        image = (noise(2, *shape, seed=n) * 200 - 60).to(dtype)
        if draw.random() < 0.5:
            image = image.contiguous(memory_format=torch.channels_last)
        size = draw.choice([1, 20, 33, 70]), draw.choice([1, 9, 16, 32, 47, 100])
        points = drawn_points(draw, size, scale, torch.float32 if n % 2 else torch.float64)
        options: dict[str, Any] = {"border": border, "interpolation": "nearest"}
        if border == "transparent":
            options["background"] = (noise(shape[0], *size, seed=n) * 200 - 60).to(dtype)
        else:  # beyond the range of bytes, halfway, and NaN
            options["border_value"] = draw.choice([-3.0, 2.5, 1e9, math.nan])
        got = wk.remap(image, points, backend="cpu", **options)
        wanted = wk.remap(image, points, backend="reference", **options)
        same = {"atol": 0, "rtol": 0, "equal_nan": True}
        torch.testing.assert_close(got, wanted, **same, msg=lambda text, n=n: f"case {n}: {text}")


@pytest.mark.parametrize("border", FILLED)
def test_affine_and_perspective_agree_over_many_tiles(border):
    image = noise(2, 3, 90, 140, dtype=torch.float32)
    tilt = torch.eye(3, dtype=torch.float64)
    tilt[2, 0] = 2e-3
    for scale in (0.4, 1.1, 3.0):
        turn = wk.rotation_matrix((60.0, 40.0), torch.tensor([20.0, 140.0]).double(), scale)
        for warp, matrix in (
            (wk.warp_affine, turn),
            (wk.warp_perspective, wk.compose(turn, tilt)),
        ):
            got = warp(image, matrix, border=border, border_value=0.5, backend="cpu")
            wanted = warp(image, matrix, border=border, border_value=0.5, backend="reference")
            assert (got - wanted).abs().max() <= TOLERANCE["cpu torch.float32"]


def test_results_written_with_streaming_stores_are_the_same(monkeypatch):
    image = noise(1, 3, 70, 300, dtype=torch.float32)
    matrix = wk.rotation_matrix((150.0, 30.0), 10.0)
    for size in ((600, 1024), (600, 1021)):  # the second's rows begin at any address
        kept = wk.warp_affine(image, matrix, size=size)
        monkeypatch.setattr(warp_calls, "STREAMED", 0)
        streamed = wk.warp_affine(image, matrix, size=size)
        monkeypatch.undo()
        assert torch.equal(kept, streamed)


def gradients(warp, inputs, backend: str, **options):
    """The gradients to the image, the map and the border value."""
    image, where, value = (x.clone().requires_grad_() for x in inputs)
    out = warp(image, where, border_value=value, backend=backend, **options)
    pushed = noise(*out.shape, dtype=out.dtype, seed=3)
    found = torch.autograd.grad(out, [image, where, value], pushed, allow_unused=True)
    return [x for x in found if x is not None]  # a border value that is not visible


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_agree_over_tiles_of_all_kinds(dtype):
    draw = random.Random(8)
    for n in range(80):
        border, scale = FILLED[n % len(FILLED)], draw.choice([0.3, 1, 1, 5, 200])
        options = {"border": border, "interpolation": INTERPOLATIONS[n // 20]}
        channels = draw.choice([1, 3, 5])
        shape = [draw.choice([1, 2, 15, 33, 70]) for _ in range(2)]
        image = noise(draw.choice([1, 2]), channels, *shape, dtype=dtype, seed=n)
        size = draw.choice([1, 20, 33]), draw.choice([1, 9, 16, 32, 47])
        points = drawn_points(draw, size, scale, torch.float32 if n % 2 else torch.float64)
        if draw.random() < 0.3:
            image = image.contiguous(memory_format=torch.channels_last)
        inputs = [image, points, torch.linspace(-1, 1, channels, dtype=dtype)]
        got = gradients(wk.remap, inputs, "cpu", **options)
        wanted = gradients(wk.remap, inputs, "reference", **options)
        for g, w in zip(got, wanted, strict=True):
            scale = max(1.0, w.abs().max().item())
            near = {"atol": scale * TOLERANCE[f"cpu {dtype}"], "rtol": 0}
            torch.testing.assert_close(g, w, **near, msg=lambda text, n=n: f"case {n}: {text}")


def by_threads(warp, inputs, **options):
    """The same gradients on 1, 2 and 3 threads."""
    before, found = torch.get_num_threads(), []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        found.append(gradients(warp, inputs, "cpu", **options))
    torch.set_num_threads(before)
    return found


@pytest.fixture
def split(monkeypatch) -> Iterator[dict[str, int]]:
    """Split small images and share them among threads like large ones; count each method's uses."""
    counts = {"by_strips": 0, "by_bands": 0, "by_tile_rows": 0, "by_accumulator": 0}
    monkeypatch.setattr(backward_schedule, "BANDED", 1)
    monkeypatch.setattr(calls, "INLINE", 1)
    for name in counts:
        made = getattr(backward_schedule, name)

        def count(*inputs, name=name, made=made):
            found = made(*inputs)
            counts[name] += found is not None
            return found

        monkeypatch.setattr(launch, name, count)
    backward_schedule.partition.cache_clear()
    yield counts
    backward_schedule.partition.cache_clear()


@pytest.mark.parametrize(
    ("images", "interpolation", "function"),
    [
        (1, "bilinear", wk.warp_affine),
        (3, "bicubic", wk.warp_affine),
        (1, "bilinear", wk.warp_perspective),
        (2, "nearest", wk.warp_perspective),
        (1, "lanczos4", wk.warp_affine),
    ],
)
def test_strips_of_an_image_give_the_references_gradients(images, interpolation, function):
    options = {"size": (420, 300), "interpolation": interpolation}
    image = noise(images, 3, 240, 400)
    matrix = wk.rotation_matrix((200.0, 120.0), torch.linspace(20, 200, images).double(), 1.2)
    if function is wk.warp_perspective:
        last = torch.tensor([[2e-4, -1e-3, 1.0]]).double().expand(images, 1, 3)
        matrix = torch.cat((matrix, last), -2)
    inputs = [image, matrix, torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)]
    found = by_threads(function, inputs, **options)
    wanted = gradients(function, inputs, "reference", **options)
    for first, second, third, w in zip(*found, wanted, strict=True):
        assert torch.equal(first, second)
        assert torch.equal(first, third)
        torch.testing.assert_close(first, w, atol=w.abs().max() * TOLERANCE["pieces"], rtol=0)


WIDE = 1e5
"""No pixel of the maps below is farther from the image, but for a perspective's."""


@pytest.mark.parametrize("kind", ["affine", "perspective"])
@pytest.mark.parametrize("taps", [1, 2, 4, 8])
def test_strips_of_one_phase_share_no_pixel(taps, kind):
    draw, reach = random.Random(1), range(1 - taps // 2, taps // 2 + 1) if taps > 1 else [0]
    around = torch.tensor([(i, j) for i in reach for j in reach]).double()
    cut = 0
    for _ in range(40):
        angle, shear = draw.uniform(0, 7), draw.uniform(-1, 1)
        scale = draw.choice([0.05, 0.2, 1.0, 4.0])
        matrix = wk.affine_matrix(angle=math.degrees(angle), scale=scale, shear=60 * shear)
        matrix = matrix.double()[:2] + torch.tensor([[0, 0, 40], [0, 0, 40]])
        height, width = draw.choice([200, 450]), 60
        if kind == "perspective":
            last = [draw.uniform(-1, 1) / height, draw.uniform(-1, 1) / height, 1.0]
            matrix = torch.cat((matrix, torch.tensor([last]))).double()
        shapes = warp_shapes((1, 1, 90, 90), matrix.shape, (), (height, width), "constant")
        made = by_strips(shapes, Image(1, 90, 90), matrix.numpy().ravel(), False, taps)
        if made is None:
            continue
        cut += 1
        points = wk.transform_points(matrix, wk.pixel_grid((height, width)).double())
        points = points.round() if taps == 1 else points.floor()
        rows = sorted(tuple(made.jobs[n, 1:3]) for n in range(*made.phases[1]))
        rows += sorted(tuple(made.jobs[n, 1:3]) for n in range(*made.phases[2]))
        assert sorted(r for a, b in rows for r in range(a, b)) == list(range(shapes.tile_rows))
        for begin, end in made.phases[1:]:
            seen = np.zeros(0)
            for _, first, last, *_rest in made.jobs[begin:end].tolist():
                whole = points[32 * first : 32 * last].reshape(-1, 1, 2)
                read = (whole + around).reshape(-1, 2).clamp(-WIDE, WIDE).numpy()
                if kind == "perspective":  # far outside, rows converge
                    read = read[((read >= 0) & (read < 90)).all(-1)]
                read = np.unique(read @ [2 * WIDE, 1])
                assert not np.intersect1d(read, seen, assume_unique=True).size
                seen = np.union1d(read, seen)
    assert cut > (15 if kind == "affine" else 8)


def flows(draw: random.Random, height: int, width: int, count: int = 1) -> torch.Tensor:
    """Smooth fields of offsets (count, h, w, 2), float64, some of which are large."""
    lattice = draw.choice([0.5, 6.0, 80.0]) * noise(count, 2, 6, 4, seed=draw.randrange(99))
    lattice = lattice + torch.tensor([draw.uniform(-60, 60) for _ in range(2)])[:, None, None]
    fields = wk.resize(lattice, (height, width), interpolation="bilinear")
    return fields.movedim(1, -1).contiguous()


@pytest.mark.parametrize("taps", [1, 2, 4, 8])
@pytest.mark.parametrize("border", ["constant", "replicate"])
def test_strips_of_one_phase_of_a_field_share_no_pixel(border, taps):
    draw, cut = random.Random(2), 0
    reach = range(1 - taps // 2, taps // 2 + 1) if taps > 1 else [0]
    for n in range(30):
        height, width, below = draw.choice([150, 450]), 20, draw.choice([30, 400])
        offsets = flows(draw, height, width)[0]
        shapes = warp_shapes((1, 1, below, 25), offsets.shape, (), (height, width), border)
        points = offsets + wk.pixel_grid((height, width))
        given = offsets if n % 2 else points
        maps = given.numpy().ravel()
        made = by_strips(shapes, Image(1, below, 25), maps, bool(n % 2), taps)
        if made is None:
            continue
        cut += 1
        rows = sorted(tuple(made.jobs[n, 1:3]) for n in range(*made.phases[1]))
        rows += sorted(tuple(made.jobs[n, 1:3]) for n in range(*made.phases[2]))
        assert sorted(r for a, b in rows for r in range(a, b)) == list(range(shapes.tile_rows)), n
        for begin, end in made.phases[1:]:
            seen: set[int] = set()
            for _, first, last, *_rest in made.jobs[begin:end].tolist():
                row = points[32 * first : 32 * last, :, 1]
                row = row.round() if taps == 1 else row.floor()
                rows_read = torch.cat([row + k for k in reach]).flatten()
                if border == "replicate":
                    rows_read = rows_read.clamp(0, below - 1)
                read = {y for y in rows_read.tolist() if 0 <= y < below}
                assert not read & seen, n
                seen |= read
    assert cut > 8


@pytest.mark.parametrize("border", ["constant", "replicate", "reflect"])
def test_flows_give_the_references_gradients(border, split):
    """Split by strips, images and bands; float32 offsets are added in float64."""
    draw = random.Random(4)
    for n in range(8):
        images, fields = ((1, 1), (2, 2), (2, 1), (1, 3))[n % 4]
        image = noise(images, 2, 230, 60, dtype=torch.float32, seed=n)
        field = flows(draw, 260, 50, fields).float()
        if n == 5:
            field[0, 7, 7] = math.nan
        inputs = [image, field, torch.tensor([0.1, -0.3])]
        options = {"border": border, "interpolation": "bicubic" if n < 2 else "bilinear"}
        found = by_threads(wk.warp_flow, inputs, **options)
        wanted = gradients(wk.warp_flow, inputs, "reference", **options)
        for first, second, third, w in zip(*found, wanted, strict=True):
            assert torch.equal(first, second), n
            assert torch.equal(first, third), n
            assert first.dtype == w.dtype, n
            near = TOLERANCE["cpu torch.float32"] * max(1.0, w.abs().max().item())
            torch.testing.assert_close(first, w, atol=near, rtol=0)
    assert split["by_bands"] > 0
    assert (split["by_strips"] > 0) == (border != "reflect")


PIECES = [(3, 1, "111"), (1, 5, "111"), (5, 1, "100"), (2, 2, "011")]
"""Channels, matrices, and which of image, matrix and fill get a gradient."""


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("border", BORDERS)
def test_every_way_to_split_an_image_gives_the_references_gradients(border, interpolation, split):
    """Bands, strips, accumulators and tile rows; planar and channels-last images; backgrounds."""
    turns = wk.rotation_matrix((40.0, 30.0), torch.linspace(0, 80, 5).double(), 0.9)
    for channels, count, wanted in PIECES:
        given = [noise(1, channels, 70, 90, seed=channels), turns[:count], noise(channels, seed=1)]
        options: dict[str, Any] = {"border": border, "interpolation": interpolation}
        third = "border_value"
        if border == "transparent":
            given[2], third = noise(count, channels, 230, 70, seed=2), "background"
        for layout in (torch.contiguous_format, torch.channels_last):
            given[0] = given[0].contiguous(memory_format=layout)
            found: list[list[Any]] = []
            for backend, threads in (("reference", 1), ("cpu", 1), ("cpu", 2), ("cpu", 3)):
                before = torch.get_num_threads()
                torch.set_num_threads(threads)
                leaves = [
                    t.clone().requires_grad_(w == "1") for t, w in zip(given, wanted, strict=True)
                ]
                options |= {third: leaves[2], "backend": backend, "size": (230, 70)}
                out = wk.warp_affine(*leaves[:2], **options)
                if out.requires_grad:  # not for nearest with an invisible fill
                    out.backward(noise(*out.shape, seed=3))
                found.append([leaf.grad for leaf in leaves])
                torch.set_num_threads(before)
            for right, *others in zip(*found, strict=True):
                for other in others:
                    if right is None or other is None:  # for an invisible fill
                        assert all(x is None or not x.any() for x in (right, *others))
                        continue
                    assert torch.equal(other, others[0]), (channels, count, wanted, layout)
                    atol = TOLERANCE["pieces"] * max(1.0, right.abs().max().item())
                    torch.testing.assert_close(other, right, atol=atol, rtol=0)
    assert split["by_bands"] + split["by_strips"] > 0
    assert interpolation == "nearest" or split["by_tile_rows"] > 0


def test_a_flow_keeps_its_precision_far_from_the_origin():
    """A sum in float32 would be off by 2^-12 pixels there."""
    image = torch.zeros(1, 1, 1, 5000)
    image[..., ::2] = 1.0
    offsets = torch.zeros(1, 5000, 2)
    offsets[..., 0] = 1 / 2**14
    got = wk.warp_flow(image, offsets)[0, 0, 0, 4000:4999]
    wanted = torch.tensor([1 - 2**-14, 2**-14]).repeat(500)[:999]
    assert torch.equal(got, wanted)
