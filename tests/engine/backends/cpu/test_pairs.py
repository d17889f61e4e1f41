"""The kernels that read pairs of neighbours, against the reference."""

from __future__ import annotations

import math
import random

import pytest
import torch

import warpkit as wk
from tests.support.inputs import noise
from tests.support.tolerances import TOLERANCE
from warpkit.engine.backends.cpu.warps import pairs_launch
from warpkit.engine.backends.cpu.warps.pair_jobs import by_strips
from warpkit.engine.backends.cpu.warps.work import warp_shapes
from warpkit.engine.sampling.rules import BORDERS

FILLED = [border for border in BORDERS if border != "transparent"]


def drawn_points(draw: random.Random, size: tuple[int, int], scale: float, dtype: torch.dtype):
    """A turned, shaken field of points, some of which are nowhere."""
    angle, (h, w) = draw.uniform(0, 7), size
    turn = torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    points = wk.pixel_grid(size).double() @ (scale * turn.double()).T
    points = points + draw.uniform(-20, 60) + noise(h, w, 2, seed=draw.randrange(99))
    odd = torch.tensor([math.nan, math.inf, -(2.0**31), 2.0**31 - 1, 1e20])
    if draw.random() < 0.3:
        points.view(-1)[torch.randint(0, points.numel(), (5,))] = odd.double()
    return points.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_agrees_over_tiles_of_all_kinds(dtype):
    # whole tiles, those over a border, boxes too large for a window, ends of rows of every length
    draw = random.Random(5)
    for n in range(120):
        border, scale = FILLED[n % len(FILLED)], draw.choice([0.3, 1, 1, 5, 200, 1e4])
        shape = [draw.choice([1, 2, 15, 33, 70, 130]) for _ in range(2)]
        image = noise(draw.choice([1, 2]), draw.choice([1, 3, 4]), *shape, dtype=dtype, seed=n)
        size = draw.choice([1, 20, 33, 70]), draw.choice([1, 9, 16, 32, 47, 100])
        value = draw.choice([0.25, math.nan, math.inf])
        points = drawn_points(draw, size, scale, torch.float32 if n % 2 else torch.float64)
        options = {"border": border, "border_value": value}
        options["interpolation"] = "bilinear" if n < 60 else "bicubic"
        got = wk.remap(image, points, backend="cpu", **options)
        wanted = wk.remap(image, points, backend="reference", **options)
        atol = TOLERANCE[f"cpu {dtype}"]
        torch.testing.assert_close(got, wanted, atol=atol, rtol=atol, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.float32, torch.float64])
def test_nearest_shows_the_references_pixels_in_every_layout(dtype):
    draw = random.Random(6)
    for n in range(60):
        border, scale = BORDERS[n % len(BORDERS)], draw.choice([0.3, 1, 1, 5, 1e4])
        shape = draw.choice([1, 3]), *(draw.choice([1, 2, 15, 33, 70]) for _ in range(2))
        image = (noise(2, *shape, seed=n) * 200 - 60).to(dtype)
        if draw.random() < 0.5:
            image = image.contiguous(memory_format=torch.channels_last)
        size = draw.choice([1, 20, 33, 70]), draw.choice([1, 9, 16, 32, 47, 100])
        points = drawn_points(draw, size, scale, torch.float32 if n % 2 else torch.float64)
        options = {"border": border, "interpolation": "nearest"}
        if border == "transparent":
            options["background"] = (noise(shape[0], *size, seed=n) * 200 - 60).to(dtype)
        else:  # beyond what bytes hold, halfway, and no number
            options["border_value"] = draw.choice([-3.0, 2.5, 1e9, math.nan])
        got = wk.remap(image, points, backend="cpu", **options)
        wanted = wk.remap(image, points, backend="reference", **options)
        torch.testing.assert_close(got, wanted, atol=0, rtol=0, equal_nan=True)


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


def test_streamed_results_are_the_same(monkeypatch):
    image = noise(1, 3, 70, 300, dtype=torch.float32)
    matrix = wk.rotation_matrix((150.0, 30.0), 10.0)
    for size in ((600, 1024), (600, 1021)):  # a row of the second begins where it may
        kept = wk.warp_affine(image, matrix, size=size)
        monkeypatch.setattr(pairs_launch, "STREAMED", 0)
        streamed = wk.warp_affine(image, matrix, size=size)
        monkeypatch.undo()
        assert torch.equal(kept, streamed)


def gradients(warp, inputs, backend: str, **options):
    """Of the image, the map and the border's value."""
    image, where, value = (x.clone().requires_grad_() for x in inputs)
    out = warp(image, where, border_value=value, backend=backend, **options)
    pushed = noise(*out.shape, dtype=out.dtype, seed=3)
    found = torch.autograd.grad(out, [image, where, value], pushed, allow_unused=True)
    return [x for x in found if x is not None]  # a border value that nothing shows


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_agree_over_tiles_of_all_kinds(dtype):
    draw = random.Random(8)
    for n in range(40):
        border, scale = FILLED[n % len(FILLED)], draw.choice([0.3, 1, 1, 5, 200])
        options = {"border": border, "interpolation": "bilinear" if n < 20 else "bicubic"}
        channels = draw.choice([1, 3, 5])
        shape = [draw.choice([1, 2, 15, 33, 70]) for _ in range(2)]
        image = noise(draw.choice([1, 2]), channels, *shape, dtype=dtype, seed=n)
        size = draw.choice([1, 20, 33]), draw.choice([1, 9, 16, 32, 47])
        points = drawn_points(draw, size, scale, torch.float32 if n % 2 else torch.float64)
        inputs = [image, points, torch.linspace(-1, 1, channels, dtype=dtype)]
        got = gradients(wk.remap, inputs, "cpu", **options)
        wanted = gradients(wk.remap, inputs, "reference", **options)
        for g, w in zip(got, wanted, strict=True):
            scale = max(1.0, w.abs().max().item())
            torch.testing.assert_close(g, w, atol=scale * TOLERANCE[f"cpu {dtype}"], rtol=0)


@pytest.mark.parametrize(
    ("images", "interpolation", "function"),
    [
        (1, "bilinear", wk.warp_affine),
        (3, "bicubic", wk.warp_affine),
        (1, "bilinear", wk.warp_perspective),
        (2, "nearest", wk.warp_perspective),
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
    found = []
    for threads in (1, 3):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        found.append(gradients(function, inputs, "cpu", **options))
        torch.set_num_threads(before)
    wanted = gradients(function, inputs, "reference", **options)
    for first, second, w in zip(*found, wanted, strict=True):
        assert torch.equal(first, second)
        torch.testing.assert_close(first, w, atol=w.abs().max() * TOLERANCE["pieces"], rtol=0)


@pytest.mark.parametrize("kind", ["affine", "perspective"])
@pytest.mark.parametrize("taps", [1, 2, 4])
def test_strips_of_a_phase_share_no_pixel(taps, kind):
    draw, reach = random.Random(1), range(1 - taps // 2, taps // 2 + 1) if taps > 1 else [0]
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
        maps = matrix.numpy().ravel()
        given = maps, shapes.mapping_of, shapes.tile_rows
        jobs = by_strips(shapes.plan, shapes.kind, *given, taps=taps)
        if jobs is None:
            continue
        cut += 1
        points = wk.transform_points(matrix, wk.pixel_grid((height, width)).double())
        points = points.round() if taps == 1 else points.floor()
        rows = sorted(tuple(jobs.jobs[n, 1:3]) for n in range(*jobs.phases[1]))
        rows += sorted(tuple(jobs.jobs[n, 1:3]) for n in range(*jobs.phases[2]))
        assert sorted(r for a, b in rows for r in range(a, b)) == list(range(shapes.tile_rows))
        for begin, end in jobs.phases[1:]:
            seen: set[tuple[float, float]] = set()
            for _, first, last, *_rest in jobs.jobs[begin:end].tolist():
                whole = points[32 * first : 32 * last].reshape(-1, 2)
                read = {(x + i, y + j) for x, y in whole.tolist() for i in reach for j in reach}
                if kind == "perspective":  # far outside, rows come together
                    read = {(x, y) for x, y in read if 0 <= x < 90 and 0 <= y < 90}
                assert not read & seen
                seen |= read
    assert cut > (15 if kind == "affine" else 8)


def flows(draw: random.Random, height: int, width: int, count: int = 1) -> torch.Tensor:
    """Smooth fields of offsets, of which some reach far (count, h, w, 2), float64."""
    lattice = draw.choice([0.5, 6.0, 80.0]) * noise(count, 2, 6, 4, seed=draw.randrange(99))
    lattice = lattice + torch.tensor([draw.uniform(-60, 60) for _ in range(2)])[:, None, None]
    fields = wk.resize(lattice, (height, width), interpolation="bilinear")
    return fields.movedim(1, -1).contiguous()


@pytest.mark.parametrize("taps", [1, 2, 4])
@pytest.mark.parametrize("border", ["constant", "replicate"])
def test_strips_of_fields_share_no_pixel_of_the_image(border, taps):
    draw, cut = random.Random(2), 0
    reach = range(1 - taps // 2, taps // 2 + 1) if taps > 1 else [0]
    for n in range(30):
        height, width, below = draw.choice([150, 450]), 20, draw.choice([30, 400])
        offsets = flows(draw, height, width)[0]
        shapes = warp_shapes((1, 1, below, 25), offsets.shape, (), (height, width), border)
        points = offsets + wk.pixel_grid((height, width))
        given = offsets if n % 2 else points
        maps = given.numpy().ravel(), shapes.mapping_of
        jobs = by_strips(shapes.plan, shapes.kind, *maps, shapes.tile_rows, bool(n % 2), taps)
        if jobs is None:
            continue
        cut += 1
        rows = sorted(tuple(jobs.jobs[n, 1:3]) for n in range(*jobs.phases[1]))
        rows += sorted(tuple(jobs.jobs[n, 1:3]) for n in range(*jobs.phases[2]))
        assert sorted(r for a, b in rows for r in range(a, b)) == list(range(shapes.tile_rows))
        for begin, end in jobs.phases[1:]:
            seen: set[int] = set()
            for _, first, last, *_rest in jobs.jobs[begin:end].tolist():
                row = points[32 * first : 32 * last, :, 1]
                row = row.round() if taps == 1 else row.floor()
                rows_read = torch.cat([row + k for k in reach]).flatten()
                if border == "replicate":
                    rows_read = rows_read.clamp(0, below - 1)
                read = {y for y in rows_read.tolist() if 0 <= y < below}
                assert not read & seen
                seen |= read
    assert cut > 8


@pytest.mark.parametrize("border", ["constant", "replicate", "reflect"])
def test_flows_give_the_references_gradients(border):
    """By strips, by images and by bands; float32 offsets are added in float64."""
    draw, by_jobs = random.Random(4), []
    launched = pairs_launch.launch_backward
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            pairs_launch, "launch_backward", lambda *args: (by_jobs.append(1), launched(*args))
        )
        for n in range(8):
            images, fields = ((1, 1), (2, 2), (2, 1), (1, 3))[n % 4]
            image = noise(images, 2, 230, 60, dtype=torch.float32, seed=n)
            field = flows(draw, 260, 50, fields).float()
            if n == 5:
                field[0, 7, 7] = math.nan
            inputs = [image, field, torch.tensor([0.1, -0.3])]
            options = {"border": border, "interpolation": "bicubic" if n < 2 else "bilinear"}
            found = []
            for threads in (1, 3):
                before = torch.get_num_threads()
                torch.set_num_threads(threads)
                found.append(gradients(wk.warp_flow, inputs, "cpu", **options))
                torch.set_num_threads(before)
            wanted = gradients(wk.warp_flow, inputs, "reference", **options)
            for first, second, w in zip(*found, wanted, strict=True):
                assert torch.equal(first, second)
                assert first.dtype == w.dtype
                near = TOLERANCE["cpu torch.float32"] * max(1.0, w.abs().max().item())
                torch.testing.assert_close(first, w, atol=near, rtol=0)
    assert len(by_jobs) > (4 if border == "reflect" else 12)


def test_a_flow_far_from_the_origin_keeps_its_digits():
    """A sum in float32 would be off by 2^-12 of a pixel there."""
    image = torch.zeros(1, 1, 1, 5000)
    image[..., ::2] = 1.0
    offsets = torch.zeros(1, 5000, 2)
    offsets[..., 0] = 1 / 2**14
    got = wk.warp_flow(image, offsets)[0, 0, 0, 4000:4999]
    wanted = torch.tensor([1 - 2**-14, 2**-14]).repeat(500)[:999]
    assert torch.equal(got, wanted)
