"""One contract for all operators: kernels give the definition's results in every mode of torch.

The definitions themselves are tested against independent results where the public functions are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad, gradcheck

from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE
from warpkit.engine.binding.operator import Operator
from warpkit.engine.binding.vjp import vjp
from warpkit.engine.cpu.native_library import LIBRARY
from warpkit.engine.definitions import depth, lens_inverse, lens_models, lens_rays
from warpkit.engine.definitions.correlation import Square
from warpkit.engine.definitions.depth import Depths
from warpkit.engine.definitions.depth_warp import DepthWarp
from warpkit.engine.definitions.objects.canvases import Canvas
from warpkit.engine.definitions.objects.rectangles import rectangles
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.engine.definitions.sweep import Sweep
from warpkit.engine.operators.correlation import CORRELATION
from warpkit.engine.operators.depth import POINTS
from warpkit.engine.operators.depth_warp import SHOWN
from warpkit.engine.operators.four_points import FOUR_POINTS
from warpkit.engine.operators.front import FRONT
from warpkit.engine.operators.inverse import INVERT
from warpkit.engine.operators.lens_field import FIELD, Field
from warpkit.engine.operators.lens_inverse import UNBEND
from warpkit.engine.operators.objects import CROP, PAINT, Crop, Paint
from warpkit.engine.operators.similarity import SIMILARITY
from warpkit.engine.operators.sphere import VIEW, View
from warpkit.engine.operators.sweep import SWEEP
from warpkit.engine.operators.warp import WARP, Warp

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="no native library")
GRADCHECK = sys.modules["torch.autograd.gradcheck"]  # as an attribute it is the function


class Case(NamedTuple):
    """An operator, and how to make its tensors."""

    operator: Operator
    options: Any
    make: Callable[[torch.Generator], list[Tensor]]
    """Tensors of batches that broadcast, (2, 1) and (3,), or of objects and images."""
    tolerance: str
    constants: int = 0
    """How many of the last tensors have no gradient."""


def normal(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def matrices(rows: int) -> Callable[[torch.Generator], list[Tensor]]:
    identity = torch.eye(3, dtype=torch.float64)[:rows]
    return lambda generator: [identity + 0.2 * normal(generator, 2, 3, rows, 3)]


def field(count: int, turn: float = 0.3) -> Callable[[torch.Generator], list[Tensor]]:
    """Lenses (2, 1) of 4 + count numbers, and matrices (3,) to rays; turn: in radians, about y."""

    def make(generator: torch.Generator) -> list[Tensor]:
        camera = torch.tensor([50.0, 55, 10, 7], dtype=torch.float64).expand(2, 1, 4)
        lens = torch.cat((camera, 0.05 * normal(generator, 2, 1, count)), -1)
        axis = torch.tensor([[0, -0.1, turn], [0.1, 0, -0.1], [-turn, 0.1, 0]])
        view = torch.tensor([[30.0, 0, 10], [0, 35, 7], [0, 0, 1]]) @ torch.linalg.matrix_exp(axis)
        return [lens, torch.linalg.inv(view.double()) + 1e-3 * normal(generator, 3, 3, 3)]

    return make


def inverse(model: str, count: int) -> Callable[[torch.Generator], list[Tensor]]:
    """Coefficients (2, 1, 1, count), directions (3, 7), the third without a solution."""

    def make(generator: torch.Generator) -> list[Tensor]:
        k = 0.05 * normal(generator, 2, 1, 1, count)
        u, v = 0.4 * normal(generator, 2, 3, 7)
        one = torch.ones_like(k[..., 0])
        lens = lens_models.Lens(model, one, one, one, one, k.unbind(-1))
        reach = torch.stack([part.double() for part in lens_inverse.reach_of(lens)], -1)
        return [k, u, v, reach]

    return make


SQUARE = torch.tensor([[0, 0], [2, 0], [2, 1.8], [0, 1.8]], dtype=torch.float64)


def corners(generator: torch.Generator) -> list[Tensor]:
    return [SQUARE + 0.1 * normal(generator, *batch, 4, 2) for batch in ((2, 1), (3,))]


def points(generator: torch.Generator) -> list[Tensor]:
    weights = torch.rand(5, generator=generator, dtype=torch.float64) + 0.1
    return [normal(generator, 2, 1, 5, 2), normal(generator, 3, 5, 2), weights]


def sphere(generator: torch.Generator) -> list[Tensor]:
    """Pictures, and matrices that show a pole."""
    turn = torch.tensor([[1.0, 0, -2], [0, 0.1, 1], [0.1, -1, 0]], dtype=torch.float64)
    return [normal(generator, 2, 1, 3, 8, 16), turn + 0.1 * normal(generator, 3, 3, 3)]


LINEAR = SamplingRule("bilinear", "constant")
IMAGE_OF, SHIFTS = torch.tensor([0, 1, 1, 0]), [[1.3, 0.4], [2.2, -0.7], [-1.6, 1.4], [0.3, 0.2]]
"""The images of four objects, and the positions that their first pixels read."""


def maps(generator: torch.Generator) -> Tensor:
    shifts = torch.tensor(SHIFTS, dtype=torch.float64)[..., None]
    turns = torch.eye(2, dtype=torch.float64) + 0.1 * normal(generator, 4, 2, 2)
    return torch.cat((turns, shifts), -1)


def crops(generator: torch.Generator) -> list[Tensor]:
    """Maps, fill values, and a list of two images."""
    fill, images = normal(generator, 4, 3, 1, 1), [normal(generator, 3, 9, 7) for _ in range(2)]
    return [maps(generator), fill, *images]


def patches(generator: torch.Generator) -> list[Tensor]:
    """Maps, patches, one mask for all, opacities, and a batch of images."""
    mask, opacity = normal(generator, 1, 1, 4, 5).sigmoid(), normal(generator, 4).sigmoid()
    paint = [normal(generator, 4, 3, 4, 5), mask, opacity, normal(generator, 2, 3, 9, 11)]
    return [maps(generator), *paint]


def paint(*layers: str) -> Paint:
    places = torch.tensor([[0, 1], [2, 0], [3, 4], [1, 2]])
    edges = torch.cat((places, places + torch.tensor([5, 4])), -1)
    boxes = rectangles(edges.double(), IMAGE_OF, Canvas(2, 9, 11, None, 198), touched=False)
    return Paint(("to_source", *layers), boxes, LINEAR, None, None, True)


def windows(generator: torch.Generator) -> list[Tensor]:
    """Maps, fill values, and a batch of images."""
    return [maps(generator), normal(generator, 3, 4), normal(generator, 2, 3, 9, 11)]


def depths(options: Depths, count: int) -> Callable[[torch.Generator], list[Tensor]]:
    """Depths (2, 1, 5, 7), a pinhole (3, 4) or rays (2, 1, 3, 5, 7), poses (3,), and lenses of
    4 + count numbers (3,)."""

    def make(generator: torch.Generator) -> list[Tensor]:
        seen = 0.5 + normal(generator, 2, 1, 5, 7).abs()
        focal = torch.tensor([50.0, 55, 3, 2], dtype=torch.float64)
        rays = focal + normal(generator, 3, 4)
        if not options.pinhole:
            rays = 0.2 * normal(generator, 2, 1, 3, 5, 7) + torch.tensor([0, 0, 1.0])[:, None, None]
        pose = torch.eye(3, 4, dtype=torch.float64) + 0.1 * normal(generator, 3, 3, 4)
        lens = torch.cat((focal.expand(3, 4), 0.05 * normal(generator, 3, count)), -1)
        end = lens_rays.end_of(lens_models.unpacked(options.model, lens))
        return [seen, rays, pose, lens, end]

    return make


def fronts(wide: bool) -> Callable[[torch.Generator], list[Tensor]]:
    """Images (2, 1), and flows and depths (3,) with holes and equal depths."""

    def make(generator: torch.Generator) -> list[Tensor]:
        flow, near = 2 * normal(generator, 3, 6, 8, 2), normal(generator, 3, 6, 8).round()
        kind = torch.float64 if wide else torch.float32
        return [normal(generator, 2, 1, 3, 6, 8), flow.to(kind), near.to(kind)]

    return make


def scenes(
    options: Depths, count: int, size: tuple[int, int]
) -> Callable[[torch.Generator], list[Tensor]]:
    """Images (3,) of 9 x 11 pixels, a fill, and the tensors of `depths`, with
    depths of this size, one of them missing."""

    def make(generator: torch.Generator) -> list[Tensor]:
        _, *rest = depths(options, count)(generator)
        if not options.pinhole:
            rest[0] = (
                0.05 * normal(generator, 2, 1, 3, *size) + torch.tensor([0, 0, 1.0])[:, None, None]
            )
        seen = 0.5 + normal(generator, 2, 1, *size).abs()
        seen[0, 0, -1, -1] = torch.nan
        return [normal(generator, 3, 2, 9, 11), normal(generator, 1, 1, 1), seen, *rest]

    return make


def squares(moved: bool) -> Callable[[torch.Generator], list[Tensor]]:
    """Pictures (2, 1) and (3,) of two sizes, float32, and perhaps a flow (3,)."""

    def make(generator: torch.Generator) -> list[Tensor]:
        pictures = normal(generator, 2, 1, 5, 4, 19), normal(generator, 3, 5, 6, 7)
        flow = [2 * normal(generator, 3, 4, 19, 2)] if moved else []
        return [t.float() for t in pictures] + flow

    return make


def sweeps(options: Sweep, count: int) -> Callable[[torch.Generator], list[Tensor]]:
    """Sources (2, 1) of two views, float32, and the tensors of `depths` (3,), three planes each."""
    scene = Depths(options.kind, options.model, options.pinhole, False, None)

    def make(generator: torch.Generator) -> list[Tensor]:
        _, rays, pose, lens, end = depths(scene, count)(generator)
        seen = 0.5 + normal(generator, 3, 3, *options.size).abs()
        sources = normal(generator, 2, 1, 2, 6, 6, 8).float()
        return [sources, seen, rays, pose[:, None], lens[:, None], end[:, None]]

    return make


def warped(*mapping: int, dense: bool = False) -> Callable[[torch.Generator], list[Tensor]]:
    """Images, maps of this shape near the identity, and values outside of the images."""

    def make(generator: torch.Generator) -> list[Tensor]:
        noise = normal(generator, 3, *mapping)
        if mapping[-1] == 3:
            maps = torch.eye(3)[: mapping[0]] + 0.1 * noise / torch.tensor([1.0, 1, 0.2])
            maps[..., 2:, :2] *= 0.05
        else:
            maps = 4 + 4 * noise
        fill = normal(generator, 3, *((5, 7) if dense else (1, 1)))
        return [normal(generator, 2, 1, 3, 9, 8), maps.double(), fill]

    return make


NAN, DOUBLE = float("nan"), torch.float64
IMAGE_WARPS = {
    "warp by (2, 3)": (("bilinear", "constant"), {"forward": True}, warped(2, 3)),
    "warp by inverse (2, 3)": (("bicubic", "wrap"), {}, warped(2, 3)),
    "warp by (3, 3)": (("lanczos4", "reflect"), {"forward": True}, warped(3, 3)),
    "warp by points": (("bilinear", "replicate"), {}, warped(5, 7, 2)),
    "warp by offsets": (
        ("bicubic", "transparent"), {"relative": True}, warped(5, 7, 2, dense=True)
    ),
}  # fmt: skip
DEPTHS = {
    f"depths {kind}, {model} {count}, {'pinhole' if pinhole else 'rays'}": Case(
        POINTS, options, depths(options, count), "lens kernels", 1
    )
    for kind in depth.KINDS
    for model, count in [*(("brown", n) for n in (0, 4, 5, 8, 12, 14)), ("fisheye", 4)]
    for pinhole in (True, False)
    for options in [Depths(kind, model, pinhole, True, ("bilinear", 9, 11))]
}
WARPS = {
    f"{rule} {border} warp of {kind}, {model} {count}, {'pinhole' if pinhole else 'rays'}": Case(
        SHOWN, DepthWarp(options, SamplingRule(rule, border)), scenes(options, count, size),
        "lens kernels", 1,
    )
    for rule, border, kind, model, count, pinhole, size in (
        ("bilinear", "constant", "z", "brown", 0, True, (5, 7)),
        ("bilinear", "replicate", "ray", "brown", 8, True, (37, 70)),
        ("bicubic", "reflect", "inverse", "brown", 14, False, (5, 7)),
        ("lanczos4", "constant", "z", "fisheye", 4, False, (33, 41)),
    )
    for options in [Depths(kind, model, pinhole, False, (rule, 9, 11))]
}  # fmt: skip
MATCHING = {
    "correlation by a flow": Case(
        CORRELATION, Square((1, 2), 1.0, "reflect"), squares(True), "matching gradient"
    ),
    "correlation": Case(
        CORRELATION, Square((2, 1), 2.0, "constant"), squares(False), "matching gradient"
    ),
    **{
        f"sweep of {kind}, {model} {count}, {border}": Case(
            SWEEP, options, sweeps(options, count), "matching gradient", 1
        )
        for kind, model, count, pinhole, border in (
            ("z", "brown", 0, True, None),
            ("ray", "fisheye", 4, True, "constant"),
            ("inverse", "brown", 14, False, "replicate"),
        )
        for options in [Sweep(kind, model, pinhole, (5, 7), "variance", 3, border)]
    },
}
"""Their kernels are of float32, so that finite differences tell nothing."""

CASES = {
    "inverse of (2, 3)": Case(INVERT, NAN, matrices(2), "exact inverse"),
    "inverse of (3, 3)": Case(INVERT, NAN, matrices(3), "exact inverse"),
    "inverse, 0 if singular": Case(INVERT, 0.0, matrices(3), "exact inverse"),
    **{
        f"field of {model} {count}{', opencv' * opencv}, turned by {turn}": Case(
            FIELD, Field(model, (5, 7), opencv), field(count, turn), "lens kernels"
        )
        for model, count in [*(("brown", n) for n in (4, 5, 8, 12, 14)), ("fisheye", 4)]
        for opencv in (False, True)
        for turn in (0.3, 2.6)
    },
    **{
        f"inverse of {model} {count}": Case(UNBEND, model, inverse(model, count), "lens roots", 1)
        for model, count in [*(("brown", n) for n in (4, 5, 8, 12, 14)), ("fisheye", 4)]
    },
    **DEPTHS,
    **WARPS,
    **{
        name: Case(WARP, Warp((5, 7), SamplingRule(*rule), **kind), make, "cpu torch.float64")
        for name, (rule, kind, make) in IMAGE_WARPS.items()
    },
    **MATCHING,
    "four points": Case(FOUR_POINTS, DOUBLE, corners, "quad kernels"),
    "front": Case(FRONT, (5, 7), fronts(False), "cpu torch.float64", 2),
    "front of float64": Case(FRONT, (5, 7), fronts(True), "cpu torch.float64", 2),
    "similarity": Case(SIMILARITY, DOUBLE, points, "similarity kernels"),
    **{
        f"{rule} view": Case(VIEW, View((5, 7), rule), sphere, "cpu torch.float64")
        for rule in ("bilinear", "bicubic", "lanczos4")
    },
    "crops": Case(CROP, Crop(IMAGE_OF, (4, 5), LINEAR, False), crops, "cpu torch.float64"),
    "patches": Case(PAINT, paint("patches", "mask", "opacity"), patches, "cpu torch.float64"),
    "opaque boxes": Case(PAINT, paint("fill"), windows, "cpu torch.float64"),
}
FEW = [
    "inverse of (2, 3)",
    "field of brown 14, turned by 0.3",
    "field of fisheye 4, opencv, turned by 2.6",
    "four points",
    "inverse of brown 14",
    "inverse of fisheye 4",
    "depths z, brown 0, pinhole",
    "depths ray, fisheye 4, pinhole",
    "depths inverse, brown 14, rays",
    "bilinear constant warp of z, brown 0, pinhole",
    "bicubic reflect warp of inverse, brown 14, rays",
    "front",
    "similarity",
    "bicubic view",
    *IMAGE_WARPS,
]
"""One of each kind with batches that broadcast, for checks that take long."""

COMPILED = [name for name in FEW if CASES[name].operator is not UNBEND]
COMPILED += ["correlation", "sweep of z, brown 0, None"]  # the other sweeps took 8 s each
"""UNBEND's number of iterations is fixed in traces, tested with the public functions."""

OBJECTS = ["crops", "patches", "opaque boxes"]
"""These have no batches; the public functions' tests vmap and compile them."""


def drawn(case: Case, seed: int = 0) -> list[Tensor]:
    """The case's tensors, which require gradients as far as they have them."""
    made = case.make(torch.Generator().manual_seed(seed))
    free = len(made) - case.constants
    return [t.requires_grad_() if n < free else t for n, t in enumerate(made)]


def floats(results: Any) -> tuple[Tensor, ...]:
    """The results that have gradients, with 0 where there is no number."""
    several = results if isinstance(results, tuple) else (results,)
    return tuple(r.nan_to_num() for r in several if r.is_floating_point())


def assert_close(found: Any, wanted: Any, tolerance: str) -> None:
    """Equal up to rounding relative to the largest entry."""
    for a, b in zip(found, wanted, strict=True):
        if not b.is_floating_point():
            assert torch.equal(a, b)
            continue
        largest = float(b.detach().nan_to_num().abs().max()) if b.numel() else 0.0
        limit = TOLERANCE[tolerance] * max(largest, 1.0)
        torch.testing.assert_close(a, b, rtol=0, atol=limit, equal_nan=True)


def by_formula(case: Case, *tensors: Tensor) -> Any:
    return case.operator.formula(case.options, *tensors)


def by_kernels(case: Case, *tensors: Tensor) -> Any:
    return case.operator(case.options, *tensors)


def as_tuple(results: Any) -> tuple[Tensor, ...]:
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize("name", CASES)
def test_values_and_first_gradients_are_the_formulas(name):
    case = CASES[name]
    tensors = drawn(case)
    free = tensors[: len(tensors) - case.constants]
    found, wanted = by_kernels(case, *tensors), by_formula(case, *tensors)
    assert as_tuple(found)[0].grad_fn.name() == "NodeBackward"
    assert_close(as_tuple(found), as_tuple(wanted), case.tolerance)
    again = by_kernels(case, *drawn(case))
    assert all(map(torch.equal, floats(found), floats(again)))
    with torch.no_grad():
        assert all(map(torch.equal, floats(found), floats(by_kernels(case, *tensors))))
    generator = torch.Generator().manual_seed(1)
    seeds = [normal(generator, *f.shape).to(f) for f in floats(found)]
    grads = [torch.autograd.grad(floats(r), free, seeds) for r in (found, wanted)]
    assert_close(*grads, case.tolerance)
    alone = torch.autograd.grad(floats(by_kernels(case, *tensors)), free[:1], seeds)
    assert torch.equal(alone[0], grads[0][0])


@pytest.mark.parametrize("name", FEW + OBJECTS)
def test_gradients_of_all_orders_and_modes(name):
    case = CASES[name]
    tensors = drawn(case)

    def function(*inputs: Tensor) -> tuple[Tensor, ...]:
        return floats(by_kernels(case, *inputs))

    options = {"check_batched_grad": True, "check_forward_ad": case.operator is not UNBEND}
    assert gradcheck(function, tensors, fast_mode=True, **options)
    assert gradgradcheck(function, tensors)
    free = tensors[: len(tensors) - case.constants]
    results = function(*tensors)
    # the gradient in a graph has the values of the one outside, and its derivative the formula's
    plain = torch.autograd.grad(results, free, [torch.ones_like(r) for r in results])
    in_graph = torch.autograd.grad(
        function(*tensors), free, [torch.ones_like(r) for r in results], create_graph=True
    )
    assert_close(in_graph, plain, case.tolerance)


@pytest.mark.parametrize("name", FEW + OBJECTS)
def test_a_gradient_that_is_one_percent_off_fails(name, monkeypatch):
    case = CASES[name]
    module: Any = case.operator.kernels["cpu"]()
    if not hasattr(module, "backward"):
        pytest.skip("its gradient is the formula's")
    exact = module.backward
    # gradcheck would repeat a failure entry by entry for its message, which took 8 s
    monkeypatch.setattr(GRADCHECK, "_run_slow_mode_and_get_error", lambda *_: "", raising=False)
    monkeypatch.setattr(module, "backward", lambda *given: [1.01 * g for g in exact(*given)])
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradcheck(lambda *inputs: floats(by_kernels(case, *inputs)), drawn(case), fast_mode=True)


@pytest.mark.parametrize("name", FEW + list(MATCHING))
def test_forward_mode_and_vmap(name):
    case = CASES[name]
    tensors = [t.detach() for t in drawn(case)]
    wanted = floats(by_kernels(case, *tensors))
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(t, torch.ones_like(t)) for t in tensors]
        for result, value in zip(floats(by_kernels(case, *duals)), wanted, strict=True):
            assert_close([forward_ad.unpack_dual(result).primal], [value], case.tolerance)
    dims = tuple(0 if len(t) == 2 and t.ndim > 2 else None for t in tensors)
    batched = torch.func.vmap(lambda *inputs: floats(by_kernels(case, *inputs)), dims)(*tensors)
    for result, value in zip(batched, wanted, strict=True):
        assert_close([result.reshape(value.shape)], [value], case.tolerance)


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_code(name, fresh_compiler):
    case = CASES[name]
    tensors = [t.detach() for t in drawn(case)]
    compiled = torch.compile(
        lambda *inputs: floats(by_kernels(case, *inputs)), backend="aot_eager", fullgraph=True
    )
    assert_close(compiled(*tensors), floats(by_kernels(case, *tensors)), case.tolerance)


@pytest.mark.parametrize("name", FEW + list(MATCHING))
def test_any_strides_threads_and_empty_batches(name):
    case = CASES[name]
    tensors = [t.detach() for t in drawn(case)]
    wanted = by_kernels(case, *tensors)
    strided = [t.repeat_interleave(2, -1)[..., ::2] for t in tensors]
    assert all(map(torch.equal, floats(by_kernels(case, *strided)), floats(wanted)))
    leaves, before, grads = [t.requires_grad_() for t in strided[:1]], torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            results = floats(by_kernels(case, *leaves, *strided[1:]))
            grads.append(torch.autograd.grad(sum(r.square().sum() for r in results), leaves))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(grads[0][0], grads[1][0])
    empty = [t[:0] if t.ndim > 2 and len(t) == 2 else t for t in tensors]
    leaf = empty[0].clone().requires_grad_()
    results = floats(by_kernels(case, leaf, *empty[1:]))
    assert results[0].numel() == 0
    assert torch.autograd.grad(sum(r.sum() for r in results), leaf)[0].shape == leaf.shape


@pytest.mark.parametrize("name", FEW[:4])
def test_an_item_of_nan_spoils_no_others_gradient(name):
    case = CASES[name]
    tensors = [t.detach() for t in drawn(case)]
    good = by_kernels(case, *tensors)
    tensors[0][1] = NAN
    tensors = [t.requires_grad_(n < len(tensors) - case.constants) for n, t in enumerate(tensors)]
    found = by_kernels(case, *tensors)
    assert all(torch.equal(f[0], g[0]) for f, g in zip(floats(found), floats(good), strict=True))
    grads = torch.autograd.grad(
        [r[0] for r in floats(found)],
        tensors[: len(tensors) - case.constants],
        [torch.ones_like(r[0]) for r in floats(found)],
    )
    assert all(g.isfinite().all() for g in grads)
    assert not grads[0][1].any()


def test_without_kernels_the_formula_decides():
    def formula(factor: float, x: Tensor) -> Tensor:
        return factor * x.square()

    operator = Operator(formula, {"cpu": lambda: None})
    x = torch.tensor([3.0], requires_grad=True)
    assert float(operator(2.0, x).detach()) == 18
    assert float(torch.autograd.grad(operator(2.0, x), x)[0]) == 12
    (found,) = vjp(lambda y: formula(2.0, y), [x], [torch.ones(1)], [True])
    assert float(found.detach()) == 12


def test_a_function_that_is_linear_has_second_gradients_of_zero():
    picture, matrix = sphere(torch.Generator().manual_seed(0))
    picture.requires_grad_()
    seen = VIEW(View((5, 7), "nearest"), picture, matrix)
    (grad,) = torch.autograd.grad(seen, picture, torch.ones_like(seen), create_graph=True)
    assert float(grad.detach().sum()) == seen.numel()  # each pixel shows one of the picture's
    (again,) = torch.autograd.grad(grad.square().sum(), picture)
    assert torch.equal(again, torch.zeros_like(picture))
