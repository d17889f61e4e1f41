"""Every order, mode and input of the gradient, for every interpolation, border and backend."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import pytest
import torch
import torch.autograd.forward_ad as forward
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, jacfwd, jacrev, jvp, vmap

import warpkit as wk
from tests.support import ROOT
from tests.support.inputs import BACKENDS, RULES, noise
from tests.support.tolerances import TOLERANCE
from warpkit.engine.backends import grid_sample
from warpkit.engine.definitions.rules import BORDERS, INTERPOLATIONS

# forward mode loads torch's decompositions, which still use torch.jit.script
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script:FutureWarning")

SIZE = (2, 3)
AFFINE = torch.tensor(
    [[[0.9, 0.2, 0.3], [-0.15, 1.1, -0.4]], [[1.3, -0.3, 0.6], [0.2, 0.8, 0.1]]],
    dtype=torch.float64,
)
"""Two maps that put no output pixel on a kink, and some taps outside the image."""
PERSPECTIVE = torch.cat(
    (AFFINE, torch.tensor([[[0.02, -0.03, 1.0]], [[-0.01, 0.05, 1.1]]], dtype=torch.float64)), 1
)
POINTS = torch.tensor([[-0.7, 0.3], [1.6, 1.2], [3.4, 0.6], [2.2, 2.7], [0.4, -0.2], [1.3, 0.8]])
POINTS = torch.stack((POINTS, POINTS.flip(0) + 0.11)).double().reshape(2, 2, 3, 2)

OPERATIONS = {
    "warp_affine": (partial(wk.warp_affine, size=SIZE), AFFINE),
    "warp_perspective": (partial(wk.warp_perspective, size=SIZE), PERSPECTIVE),
    "remap": (wk.remap, POINTS),
    "sample_pixels": (wk.sample_pixels, POINTS.flatten(1, 2)),
}
INPUTS = ("image", "matrix", "points", "border value", "background")


class Case:
    """A call of one operation as a function of (image, geometry, border value or background)."""

    def __init__(self, operation: str, backend: str, interpolation: str, border: str) -> None:
        function, geometry = OPERATIONS[operation]
        last = "background" if border == "transparent" else "border_value"
        shown = noise(2, 1, *SIZE, seed=21) if border == "transparent" else noise(2, 1, seed=22)
        self.options = {"interpolation": interpolation, "border": border}
        if operation != "sample_pixels":
            self.options["backend"] = backend
        self.function, self.last = function, last
        self.inputs = [noise(2, 1, 3, 4, seed=20), geometry.clone(), shown]
        # without missing taps, the result does not depend on the border value
        self.used = [True, interpolation != "nearest", border in ("constant", "transparent")]

    def __call__(self, image: Tensor, geometry: Tensor, last: Tensor) -> Tensor:
        return self.function(image, geometry, **self.options, **{self.last: last})

    def tracked(self) -> list[Tensor]:
        pairs = zip(self.inputs, self.used, strict=True)
        return [tensor.clone().requires_grad_(used) for tensor, used in pairs]


def operations_of(backend: str, border: str) -> list[str]:
    """sample_pixels has no backend option and no background; it is tested with the reference."""
    listed = backend == "reference" and border != "transparent"
    return [name for name in OPERATIONS if name != "sample_pixels" or listed]


def chosen_cases() -> list[tuple[str, str, str, str]]:
    """Every rule on every backend, with the operations in turn.

    Every operation is tested with every interpolation and border on each backend. All operations
    with each rule took three times as long and ran the same lines.
    """
    cases = []
    for backend, (place, (interpolation, border)) in product(BACKENDS, enumerate(RULES)):
        operations = operations_of(backend, border)
        turn = place // len(BORDERS) + place % len(BORDERS)
        cases.append((operations[turn % len(operations)], backend, interpolation, border))
    return cases


CASES = chosen_cases()


def make_case(operation: str, backend: str, interpolation: str, border: str) -> Case | None:
    """The case, or None if it is rejected, which is checked."""
    case = Case(operation, backend, interpolation, border)
    if backend == "grid_sample" and (interpolation == "lanczos4" or border == "wrap"):
        with pytest.raises(
            ValueError, match="`backend` must be one that can do this, got 'grid_sample':\n"
        ):
            case(*case.inputs)
        return None
    return case


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_cases_cover_every_pair_of_values(backend):
    mine = [case for case in CASES if case[1] == backend]
    assert {(i, b) for _, _, i, b in mine} == set(RULES)
    for border in BORDERS:
        assert {o for o, _, _, b in mine if b == border} == set(operations_of(backend, border))
    for interpolation in INTERPOLATIONS:
        found = {o for o, _, i, _ in mine if i == interpolation}
        assert found == set(operations_of(backend, "constant"))


def test_sample_pixels_has_no_background():
    with pytest.raises(ValueError, match="a list of points has no background"):
        wk.sample_pixels(noise(1, 3, 4), POINTS[0, 0], border="transparent")


@pytest.mark.parametrize(("operation", "backend", "interpolation", "border"), CASES)
def test_first_order_both_modes_and_vmap(operation, backend, interpolation, border):
    case = make_case(operation, backend, interpolation, border)
    if case is not None:
        options = {"check_forward_ad": True, "check_batched_grad": True}
        assert gradcheck(case, case.tracked(), fast_mode=is_long(case), **options)


@pytest.mark.parametrize(("operation", "backend", "interpolation", "border"), CASES)
def test_second_order(operation, backend, interpolation, border):
    case = make_case(operation, backend, interpolation, border)
    if case is not None:
        assert gradgradcheck(case, case.tracked(), fast_mode=is_long(case))


def is_long(case: Case) -> bool:
    """Whether gradcheck's random projection, which is equally strict, replaces single entries.

    Only the reference is checked entry by entry; repeating that took two thirds of the time.
    """
    return (
        case.options["interpolation"] == "lanczos4"
        or case.function is not OPERATIONS["warp_affine"][0]
        or case.options["backend"] != "reference"
    )


def test_a_gradient_scaled_by_1_01_is_caught():
    case = Case("warp_affine", "reference", "bilinear", "constant")

    def wrong(*inputs: Tensor) -> Tensor:
        value = case(*inputs)
        return value.detach() + 1.01 * (value - value.detach())

    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradcheck(wrong, case.tracked())


@pytest.mark.filterwarnings("ignore:.*under nearest interpolation")
@pytest.mark.parametrize(("interpolation", "border"), RULES)
def test_second_order_on_whole_pixels_is_finite(interpolation, border):
    """At weights of 0, where a division by the distance would give NaN."""
    background = {"background": torch.zeros(1, 3, 4)} if border == "transparent" else {}
    image = noise(1, 3, 4).requires_grad_()
    matrix = torch.tensor([[1.0, 0, 1], [0, 1, 0]], dtype=torch.float64, requires_grad=True)
    result = wk.warp_affine(image, matrix, interpolation=interpolation, border=border, **background)
    inputs = (image,) if interpolation == "nearest" else (image, matrix)
    first = torch.autograd.grad(result.square().sum(), inputs, create_graph=True)
    second = torch.autograd.grad(sum(g.square().sum() for g in first), inputs)
    assert all(g.isfinite().all() for g in (*first, *second))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("border", ["constant", "replicate", "reflect", "transparent"])
def test_nothing_leaks_from_nan_far_points_and_singular_maps(backend, border):
    image, points = noise(1, 3, 4), POINTS[0].clone()
    points[0, 0, 0], points[0, 1, 1], points[1, 0] = torch.nan, torch.inf, 2.0**31
    for function, geometry, bad in (
        (wk.remap, points, [(0, 0), (0, 1), (1, 0)]),
        (wk.warp_affine, torch.zeros(2, 3, dtype=torch.float64), []),
        (wk.warp_perspective, torch.ones(3, 3, dtype=torch.float64), []),
    ):
        inputs = [t.clone().requires_grad_() for t in (image, geometry)]
        extra = {"background": noise(1, 2, 3)} if border == "transparent" else {}
        extra |= {} if function is wk.remap else {"size": SIZE}
        result = function(*inputs, border=border, backend=backend, **extra)
        first = torch.autograd.grad(result.square().sum(), inputs, create_graph=True)
        second = torch.autograd.grad(sum(g.square().sum() for g in first), inputs)
        assert all(g.isfinite().all() for g in (*first, *second))
        for place in bad:
            assert not first[1][place].any()
        if not bad:
            assert not any(g.any() for g in first)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("operation", ["warp_affine", "warp_perspective", "remap"])
def test_autograd_raises_for_nearests_gradient_to_positions(operation, backend):
    case = Case(operation, backend, "nearest", "constant")
    image, geometry, value = (tensor.clone().requires_grad_() for tensor in case.inputs)
    with pytest.warns(UserWarning, match="no gradient reaches .* under nearest interpolation"):
        result = case(image, geometry, value)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        torch.autograd.grad(result.sum(), geometry)
    with pytest.warns(UserWarning, match="no gradient reaches .* under nearest interpolation"):
        assert not case(image.detach(), geometry, value.detach()).requires_grad


# The table of docs/gradients.md, cell by cell


def first_reverse(f: Callable[[Tensor], Tensor], x: Tensor) -> None:
    assert gradcheck(f, x.requires_grad_())


def second_reverse(f: Callable[[Tensor], Tensor], x: Tensor) -> None:
    assert gradgradcheck(f, x.requires_grad_(), fast_mode=True)


def forward_mode(f: Callable[[Tensor], Tensor], x: Tensor) -> None:
    tangent = noise(*x.shape, seed=5)
    with forward.dual_level():
        dual = forward.unpack_dual(f(forward.make_dual(x, tangent))).tangent
    _, other = jvp(f, (x,), (tangent,))
    _, back = torch.autograd.functional.jvp(f, x, tangent)  # by two reverse passes
    torch.testing.assert_close(dual, other, rtol=0, atol=0)
    torch.testing.assert_close(dual, back, rtol=0, atol=TOLERANCE["two modes float64"])


def forward_over_reverse(f: Callable[[Tensor], Tensor], x: Tensor) -> None:
    def loss(x: Tensor) -> Tensor:
        return f(x).square().sum()

    twice, mixed = jacrev(grad(loss))(x), jacfwd(grad(loss))(x)
    torch.testing.assert_close(mixed, twice, rtol=0, atol=TOLERANCE["two modes float64"])


def both_jacobians(f: Callable[[Tensor], Tensor], x: Tensor) -> None:
    torch.testing.assert_close(
        jacfwd(f)(x), jacrev(f)(x), rtol=0, atol=TOLERANCE["two modes float64"]
    )


def under_vmap(f: Callable[[Tensor], Tensor], x: Tensor) -> None:
    many = torch.stack((x, x + 0.013))
    torch.testing.assert_close(vmap(f)(many), torch.stack([f(m) for m in many]))


def per_sample(f: Callable[[Tensor], Tensor], x: Tensor) -> None:
    many = torch.stack((x, x + 0.013))
    gradient = grad(lambda x: f(x).square().sum())
    torch.testing.assert_close(vmap(gradient)(many), torch.stack([gradient(m) for m in many]))


CHECKS = {
    "first order, reverse": first_reverse,
    "second order, reverse over reverse": second_reverse,
    "forward mode": forward_mode,
    "second order, forward over reverse": forward_over_reverse,
    "`jacrev` and `jacfwd`, equal": both_jacobians,
    "`vmap`": under_vmap,
    "per sample, `vmap(grad)`": per_sample,
}


def documented() -> dict[tuple[str, str], str]:
    """The cells of the table: (order and mode, input) -> text."""
    text = (ROOT / "docs" / "gradients.md").read_text()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.split("## Order, mode and input")[1].split("##")[0].splitlines()
        if line.startswith("|") and "---" not in line
    ]
    head, *body = rows
    return {
        (row[0], name): cell for row in body for name, cell in zip(head[1:], row[1:], strict=True)
    }


def test_the_table_has_every_cell():
    assert set(documented()) == {(check, name) for check in CHECKS for name in INPUTS}


# torch warns about operations without a batching rule; jacfwd of a gradient needs one
@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("check", CHECKS)
def test_each_cell_of_the_table_is_true(check, name, backend):
    operation = "remap" if name == "points" else "warp_perspective"
    case = Case(
        operation, backend, "bicubic", "transparent" if name == "background" else "constant"
    )
    place = {"image": 0, "matrix": 1, "points": 1}.get(name, 2)

    def of_one(x: Tensor) -> Tensor:
        inputs = list(case.inputs)
        inputs[place] = x
        return case(*inputs)

    assert documented()[check, name] == "yes"
    CHECKS[check](of_one, case.inputs[place].clone())


def test_support_for_second_derivatives_of_grid_sample_is_detected():
    """In any mode in which the first call is made."""
    image, grid = noise(1, 1, 2, 2), torch.full((1, 1, 1, 2), 0.1).double().requires_grad_()
    try:
        truth = gradgradcheck(lambda g: F.grid_sample(image, g, align_corners=False), grid)
    except RuntimeError:
        truth = False
    answers = []

    def ask(x: Tensor) -> Tensor:
        answers.append(grid_sample.has_second_order.__wrapped__())
        return x.sum()

    ask(image)
    vmap(grad(ask))(image)
    with torch.inference_mode(), torch.device("meta"):
        ask(image)
    with forward.dual_level():
        ask(image)
    assert answers == [truth] * 4


@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("check", CHECKS)
def test_a_cell_without_second_derivatives_of_grid_sample(check, name, monkeypatch):
    """As with torch up to 2.12, second derivatives come from the reference."""
    monkeypatch.setattr(grid_sample, "has_second_order", lambda: False)
    test_each_cell_of_the_table_is_true(check, name, "grid_sample")


@pytest.mark.parametrize("backend", BACKENDS)
def test_vmap_over_images_of_any_layout(backend):
    images = noise(3, 2, 4, 5, 6).transpose(-1, -2).to(torch.float32)
    matrix = AFFINE.float()
    for in_dims in (0, 1, -1):
        moved = vmap(lambda i: wk.warp_affine(i, matrix, backend=backend), in_dims)(
            images.movedim(0, in_dims)
        )
        singly = torch.stack([wk.warp_affine(i, matrix, backend=backend) for i in images])
        torch.testing.assert_close(moved, singly)


@pytest.mark.parametrize(
    ("border", "padding", "corners", "last"),
    [
        ("replicate", "border", False, 0.0),
        ("reflect", "reflection", False, 0.0),
        ("reflect_101", "reflection", True, 3.0),
    ],
)
def test_a_kink_has_the_right_hand_derivative_where_torch_has_0(border, padding, corners, last):
    """By hand, on a ramp of slope 3: 5 pixels wide, in its middle row."""
    image = (3.0 * torch.arange(5.0, dtype=torch.float64)).expand(1, 3, 5)
    first, middle, end = (torch.tensor([[[x, 1.0]]]).double() for x in (0.0, 2.0, 4.0))
    size = torch.tensor([5.0, 3.0]).double()

    def torchs(p):
        grid = 2 * p / (size - 1) - 1 if corners else (2 * p + 1) / size - 1
        options = {"padding_mode": padding, "align_corners": corners}
        return torch.nn.functional.grid_sample(image[None], grid[None], **options)

    def slope(warp, p):
        p = p.clone().requires_grad_()
        return torch.autograd.grad(warp(p).sum(), p)[0][..., 0].item()

    def ours(p):
        return wk.remap(image, p, border=border)

    found = [slope(ours, p) for p in (first, middle, end)]
    assert found == pytest.approx([3.0, 3.0, -last])  # beyond the end the mirrored ramp falls
    assert [slope(torchs, p) for p in (first, middle, end)] == pytest.approx([0.0, 3.0, 0.0])
    through = [slope(lambda p: wk.remap(image, p, border=border, backend="grid_sample"), first)]
    assert through == [0.0]
