"""Cached calls give the same results and the same errors as checked ones."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

import warpkit as wk
from tests.support.inputs import noise
from tests.support.tolerances import TOLERANCE
from warpkit import warp
from warpkit.engine.binding import plan


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch):
    monkeypatch.setattr(plan, "_plans", {})


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
def test_a_cached_call_gives_the_first_ones_bits(interpolation, dtype, inverse):
    matrices = wk.rotation_matrix((9.0, 8.0), torch.tensor([30.0, 200.0]).to(dtype), 1.3)
    for matrix in (matrices, matrices[:1]):
        options = {"border": "reflect", "size": (9, 35), "inverse": inverse}
        options["interpolation"] = interpolation
        first, second = noise(2, 3, 20, 18, dtype=dtype), noise(2, 3, 20, 18, dtype=dtype, seed=9)
        wanted = wk.warp_affine(second, matrix + 0.25, **options)
        plan._plans.clear()
        wk.warp_affine(first, matrix, **options)
        assert len(plan._plans) == 1
        assert torch.equal(wk.warp_affine(second, matrix + 0.25, **options), wanted)
        assert len(plan._plans) == 1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "lanczos4"])
def test_cached_calls_also_compute_half_types_in_float32(interpolation, dtype):
    matrix = wk.rotation_matrix((9.0, 8.0), torch.tensor([30.0, 200.0]), 1.3)
    for n in range(3):
        image = noise(2, 3, 20, 18, dtype=dtype, seed=n)
        wanted = wk.warp_affine(image.float(), matrix, interpolation=interpolation).to(dtype)
        assert torch.equal(wk.warp_affine(image, matrix, interpolation=interpolation), wanted)


@pytest.mark.parametrize("interpolation", ["bicubic", "lanczos4"])
def test_every_interpolation_is_cached(interpolation):
    image, matrix = noise(1, 3, 20, 18), wk.rotation_matrix((9.0, 8.0), 30.0)
    for where in (matrix, matrix[None]):
        found = [wk.warp_affine(image, where, interpolation=interpolation) for _ in range(2)]
        assert torch.equal(*found)
        wanted = wk.warp_affine(image, where, interpolation=interpolation, backend="reference")
        torch.testing.assert_close(found[1], wanted, atol=TOLERANCE["cpu torch.float64"], rtol=0)
    assert len(plan._plans) == 2


GRID = np.stack(np.meshgrid(np.arange(7), np.arange(6)), -1)
KINDS = {
    "list": lambda numbers: numbers.tolist(),
    "array": lambda numbers: numbers.astype(np.float64),
    "float32 array": lambda numbers: numbers.astype(np.float32),
    "big-endian array": lambda numbers: numbers.astype(">f8"),
    "view of an array": lambda numbers: np.repeat(numbers, 2, -1)[..., ::2],
    "integer array": lambda numbers: numbers,
    "tensor": lambda numbers: torch.from_numpy(numbers).double(),
    "view": lambda numbers: torch.from_numpy(numbers).float().movedim(-1, 0).movedim(0, -1),
    "planes": lambda numbers: torch.from_numpy(np.moveaxis(numbers, -1, 0).copy()).movedim(0, -1),
    **{
        str(dtype): lambda numbers, dtype=dtype: torch.from_numpy(numbers).to(dtype)
        for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
    },
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gradient", [False, True])
def test_every_kind_of_matrix_and_points_gives_the_same_thrice(kind, gradient):
    """The first call converts them; a cached call would read an integer's bits as a float."""
    image, made = noise(1, 2, 6, 7, dtype=torch.float32), KINDS[kind]
    image.requires_grad_(gradient)
    matrix = np.array([[1, 0, 2], [0, 1, 1]])
    moved = torch.zeros(1, 2, 6, 7)
    moved[..., 1:, 2:] = image.detach()[..., :-1, :-2]
    back = torch.zeros(1, 2, 6, 7)
    back[..., :-1, :-2] = image.detach()[..., 1:, 2:]
    shift = np.broadcast_to([2, 1], GRID.shape).copy()
    for wanted, call in (
        (moved, lambda: wk.warp_affine(image, made(matrix))),
        (back, lambda: wk.warp_affine(image, made(matrix), inverse=True)),
        (moved, lambda: wk.warp_perspective(image, made(np.vstack((matrix, [[0, 0, 1]]))))),
        (back, lambda: wk.remap(image, made(GRID + shift))),
        (back, lambda: wk.remap(image, made(shift), relative=True)),
        (back, lambda: wk.warp_flow(image, made(shift))),
    ):
        for _ in range(3):
            assert torch.equal(call(), wanted)


def test_a_round_of_more_shapes_than_are_kept_still_finds_many(monkeypatch):
    monkeypatch.setattr(plan, "KEPT", 20)
    make, misses = warp._plan_warp, []
    monkeypatch.setattr(warp, "_plan_warp", lambda *given: (misses.append(1), make(*given))[1])
    images, matrix = [noise(1, 4, 4 + n) for n in range(25)], torch.eye(2, 3)
    for _ in range(20):
        for image in images:
            assert torch.equal(wk.warp_affine(image, matrix), image)
            assert len(plan._plans) <= 20
    assert len(plan._plans) == 20
    assert len(misses) < 20 * len(images) / 2  # all, if the oldest or everything were dropped


def test_a_cached_call_has_gradients():
    image, matrix = noise(1, 3, 8, 9), wk.rotation_matrix((4.0, 4.0), 20.0).double()
    found = []
    for _ in range(2):
        inputs = [x.clone().requires_grad_() for x in (image, matrix)]
        out = wk.warp_affine(*inputs)
        found.append(torch.autograd.grad(out.square().sum(), inputs))
    assert len(plan._plans) == 1
    for first, second in zip(*found, strict=True):
        assert torch.equal(first, second)


@pytest.mark.parametrize("value", [0.0, 7.5, 8.5, 300, -4])
def test_nearest_calls_of_bytes_are_cached(value):
    matrix = wk.rotation_matrix((9.0, 8.0), torch.tensor([30.0, 200.0]), 1.3)
    options = {"interpolation": "nearest", "border_value": value}
    for n in range(3):
        image = noise(2, 3, 20, 18, dtype=torch.uint8, seed=n)
        wanted = wk.warp_affine(image, matrix, backend="reference", **options)
        assert torch.equal(wk.warp_affine(image, matrix, **options), wanted)
    assert len(plan._plans) == 1
    image = noise(2, 3, 20, 18, dtype=torch.uint8)
    wanted = wk.warp_affine(image, matrix, backend="reference")
    for found in (wk.warp_affine(image, matrix), wk.warp_affine(image, matrix)):
        assert torch.equal(found, wanted)
    assert len(plan._plans) == 2


def test_an_array_as_interpolation_gets_the_usual_error():
    with pytest.raises(ValueError, match="warp_affine: `interpolation` must be one of"):
        wk.warp_affine(
            torch.zeros(1, 4, 4, dtype=torch.uint8),
            torch.eye(2, 3),
            interpolation=np.array(["a", "b"]),  # pyright: ignore
        )


def test_a_call_that_warns_is_not_cached():
    """Nearest loses the matrix's gradient, and warns each time."""
    matrix = wk.rotation_matrix((4.0, 4.0), 20.0).requires_grad_()
    image, found = noise(1, 3, 8, 9, dtype=torch.float32), []
    for backend in ("reference", "cpu", "cpu"):
        leaf = image.clone().requires_grad_()
        options = {"interpolation": "nearest", "backend": backend, "border_value": 0.5}
        assert not wk.warp_affine(image, matrix, **options).requires_grad
        out = wk.warp_affine(leaf, matrix, **options)
        pushed = noise(*out.shape, seed=5, dtype=torch.float32)
        found.append((out, *torch.autograd.grad(out, (leaf, matrix), pushed, allow_unused=True)))
    assert not plan._plans
    for out, to_image, to_matrix in found:
        assert torch.equal(out, found[0][0])
        assert to_matrix is None
        torch.testing.assert_close(
            to_image, found[0][1], atol=TOLERANCE["cpu torch.float32"], rtol=0
        )


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("wanted", [(True, True), (True, False), (False, True)])
def test_gradients_of_every_kind_equal_the_references(wanted, inverse):
    matrix = wk.rotation_matrix((4.0, 4.0), torch.tensor([20.0, 70.0]).double(), 1.2)
    given = [noise(2, 3, 8, 9), matrix]
    pushed = noise(4, 2, 3, 7, 10, seed=4)
    found = {}
    for backend in ("reference", "cpu", "cpu"):  # the last one by a cached call
        inputs = [x.clone().requires_grad_(w) for x, w in zip(given, wanted, strict=True)]
        needed = [x for x in inputs if x.requires_grad]
        out = wk.warp_affine(*inputs, size=(7, 10), inverse=inverse, backend=backend)
        first = torch.autograd.grad(out, needed, pushed[0], retain_graph=True)
        batch = torch.autograd.grad(out, needed, pushed, is_grads_batched=True, retain_graph=True)
        pushing = pushed[1].clone().requires_grad_()
        again = torch.autograd.grad(out, needed, pushing, create_graph=True)
        total = sum(x.sin().sum() for x in again)
        second = torch.autograd.grad(total, [*needed, pushing], allow_unused=True)
        second = [x for x in second if x is not None]
        found[backend] = [*first, *batch, *again, *second]
    assert len(plan._plans) == 1
    for got, wanted_one in zip(found["cpu"], found["reference"], strict=True):
        scale = max(1.0, wanted_one.abs().max().item())
        atol = scale * TOLERANCE["cpu torch.float64"]
        torch.testing.assert_close(got, wanted_one, atol=atol, rtol=0)


def test_zero_and_minus_zero_are_cached_apart():
    image, matrix = torch.ones(1, 4, 4), [[1.0, 0.0, 9.0], [0.0, 1.0, 0.0]]
    matrix = torch.tensor(matrix)
    for value in (0.0, -0.0, 0.0):
        out = wk.warp_affine(image, matrix, border_value=value)
        assert out.signbit().all() == (str(value) == "-0.0")


@pytest.mark.parametrize(
    "bad",
    [
        {"size": (8.0, 8.0)},
        {"size": (8, True)},
        {"inverse": 1},
        {"antialias": 0},
        {"interpolation": "linear"},
        {"border_value": True},
        {"backend": ["auto"]},
        {"background": torch.zeros(3, 8, 8)},
    ],
)
def test_bad_arguments_are_also_rejected_after_a_good_call(bad):
    image, matrix = noise(3, 8, 8), torch.eye(3)[:2]
    good = {"size": (8, 8), "inverse": True}

    def outcome(options):
        try:
            return wk.warp_affine(image, matrix, **good | options)
        except (TypeError, ValueError) as error:
            return str(error)

    before = outcome(bad)
    wk.warp_affine(image, matrix, **good)
    wk.warp_affine(image, matrix, **good | {"border_value": 1.0})
    after = outcome(bad)
    assert plan._plans
    assert type(before) is type(after)
    assert torch.equal(before, after) if isinstance(before, torch.Tensor) else before == after


def test_transforms_and_tracing_do_not_use_cached_calls():
    image, matrix = noise(2, 3, 8, 9), wk.rotation_matrix((4.0, 4.0), torch.tensor([5.0, 80.0]))
    wanted = wk.warp_affine(image, matrix)
    wk.warp_affine(image[0], matrix[0])
    assert torch.equal(torch.func.vmap(wk.warp_affine)(image, matrix), wanted)
    compiled = torch.compile(wk.warp_affine, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(image, matrix), wanted)


def test_a_torch_function_mode_sees_all_calls():
    """The search for the call that detached the graph is such a mode."""

    class Watch(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    image, matrix = noise(1, 3, 8, 8, dtype=torch.float32), torch.eye(2, 3)
    for _ in range(2):
        wanted, seen = wk.warp_affine(image, matrix), []
        with Watch():
            assert torch.equal(wk.warp_affine(image, matrix), wanted)
        assert seen


def test_a_checkpoint_repeats_a_first_call_identically():
    """A checkpoint counts saved tensors, and a cached call saves the same number."""
    image = torch.rand(1, 2, 9, 11, requires_grad=True)
    matrix = torch.tensor([[1.0, 0.1, 0.0], [0.0, 1.0, 0.5]], requires_grad=True)
    warp_affine = wk.warp_affine
    checkpoint(warp_affine, image, matrix, use_reentrant=False).square().sum().backward()
    found = image.grad, matrix.grad
    image.grad = matrix.grad = None
    warp_affine(image, matrix, backend="reference").square().sum().backward()
    for gradient, wanted in zip(found, (image.grad, matrix.grad), strict=True):
        torch.testing.assert_close(
            gradient, wanted, atol=TOLERANCE["cpu torch.float32"] * 100, rtol=0
        )


def test_batches_that_do_not_broadcast_are_rejected_before_caching():
    """A call is cached only after all checks."""
    with pytest.raises(ValueError, match="warp_affine: the batch dimensions of"):
        wk.warp_affine(torch.zeros(0, 1, 1, 1), torch.eye(2, 3).expand(2, 2, 3))
    with pytest.raises(ValueError, match="warp_affine: the batch dimensions of"):
        wk.warp_affine(torch.zeros(3, 1, 5, 5), torch.eye(2, 3).expand(2, 2, 3))


def test_points_may_get_other_memory():
    """By `.data =`, `set_` or `resize_`: nothing known of a tensor is kept beyond the call."""
    image, grid = noise(1, 6, 7), wk.pixel_grid((6, 7))
    points = grid.movedim(-1, 0).contiguous().movedim(0, -1)
    for _ in range(2):
        assert torch.equal(wk.remap(image, points), image)
    points.set_(grid)
    assert torch.equal(wk.remap(image, points), image)
    points.data = grid[:3]
    assert torch.equal(wk.remap(image, points), image[:, :3])


def test_points_are_freed_after_the_call():
    points = wk.pixel_grid((6, 7)).movedim(-1, 0).contiguous().movedim(0, -1)
    alive = weakref.ref(points)
    wk.remap(noise(1, 6, 7).requires_grad_(), points).sum().backward()
    del points
    assert alive() is None


RESIZES = [
    (arithmetic, name, dtype)
    for arithmetic, names in (
        ("exact", ("nearest", "bilinear", "bicubic", "spline3", "area")),
        ("pillow", ("nearest", "bilinear", "lanczos")),
        ("torchvision", ("nearest", "nearest_exact", "bilinear", "bicubic", "area")),
        ("opencv5", ("nearest", "bilinear", "area", "lanczos4")),
        ("opencv4_ipp", ("bilinear", "bicubic")),
        ("scipy", ("bilinear", "spline3")),
    )
    for name in names
    for dtype in (torch.uint8, torch.float32)
]


@pytest.mark.parametrize(("arithmetic", "name", "dtype"), RESIZES)
def test_a_cached_resize_gives_the_references_bits(arithmetic, name, dtype):
    """Also of other numbers, of views, of no images, and into memory of its own."""
    large = noise(2, 4, 40, 50, dtype=dtype)
    pictures = [large[:, :3], large[1], large[..., ::2], large[:0]]
    pictures.append(large[:, :3].contiguous(memory_format=torch.channels_last))
    options = {"interpolation": name, "arithmetic": arithmetic}
    boxes = [None, (3, 4.5, 20, 30)] if arithmetic in ("exact", "pillow") else [None]
    for picture in pictures:
        for box in boxes:
            more = options if box is None else options | {"box": box}
            first = wk.resize(picture, (13, 17), **more)
            kept = first.clone()
            other = picture.flip(-1) if picture.is_contiguous() else picture.clone()
            for given in (picture, other, picture):
                got = wk.resize(given, (13, 17), **more)
                wanted = wk.resize(given, (13, 17), backend="reference", **more)
                close = TOLERANCE[f"cpu {dtype}"] if dtype.is_floating_point else 0
                torch.testing.assert_close(got, wanted, atol=close, rtol=0)
                assert got.stride() == first.stride()
                got.zero_()
            assert torch.equal(first, kept)


def test_a_resize_that_wants_a_gradient_has_one_between_cached_calls():
    image = noise(1, 3, 12, 14, dtype=torch.float32)
    for _ in range(3):
        assert not wk.resize(image, (5, 6)).requires_grad
        leaf = image.clone().requires_grad_()
        wk.resize(leaf, (5, 6)).sum().backward()
        torch.testing.assert_close(leaf.grad.sum(), torch.tensor(90.0))
    assert len(plan._plans) == 1


def test_a_resize_warns_of_a_box_of_shares_each_time():
    image = noise(1, 3, 120, 140, dtype=torch.float32)
    for _ in range(3):
        with pytest.warns(UserWarning, match="box"):
            wk.resize(image, (5, 6), box=(0.1, 0.2, 0.9, 1.0))
    assert not plan._plans
