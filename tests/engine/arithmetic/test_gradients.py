"""The gradient of OpenCV's arithmetics is that of "exact": its bits, in every order and mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.func import grad, jacfwd, jvp, vmap

import warpkit as wk
from tests.support.inputs import noise
from tests.support.tolerances import TOLERANCE
from warpkit.engine.cpu import launch
from warpkit.engine.definitions import exact_gradient
from warpkit.engine.definitions.rules import BORDERS, INTERPOLATIONS

# forward mode scripts torch's own decompositions on first use
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:FutureWarning")

ARITHMETICS = ("opencv4", "opencv5")
SIZE = (6, 19)
PERSPECTIVE = torch.tensor([[1.1, 0.2, -1], [-0.1, 0.9, 0.5], [0.01, -0.02, 1]]).double()
TURNS = wk.rotation_matrix((3.0, 2.0), torch.tensor([33.0, -71.0]).double(), 1.1)
POINTS = noise(*SIZE, 2, seed=4) * 14 - 3
POINTS[1, 2], POINTS[2, 3, 0], POINTS[3, 4, 1] = torch.nan, 3e9, 50000.3

Call = Callable[..., Tensor]

CALLS: dict[str, tuple[Call, Tensor]] = {
    "affine": (partial(wk.warp_affine, size=SIZE), TURNS),
    "affine inverse": (partial(wk.warp_affine, size=SIZE, inverse=True), TURNS[0]),
    "perspective": (partial(wk.warp_perspective, size=SIZE), PERSPECTIVE),
    "singular": (partial(wk.warp_affine, size=SIZE), torch.ones(2, 3).double()),
    "points": (wk.remap, POINTS),
    "offsets": (partial(wk.remap, relative=True), (POINTS / 4).float()),
    "flow": (wk.warp_flow, POINTS / 4),
}


def image_of(name: str, dtype: torch.dtype = torch.float64) -> Tensor:
    images = {"planar": noise(3, 7, 9), "last": noise(2, 7, 9, 3).permute(0, 3, 1, 2)}
    return images[name].to(dtype)


def leaves(name: str, image: Tensor, border: str) -> tuple[Call, list[Tensor]]:
    """A warp as a function of its tensors, and these: image, map, border value or background."""
    call, mapping = CALLS[name]
    if border == "transparent":
        batch = () if image.ndim == 3 and mapping.ndim < 3 else (2,)
        batch = () if mapping.shape[-1] == 2 and image.ndim == 3 else batch
        below = noise(*batch, 3, *SIZE, seed=3).to(image.dtype)
        return lambda i, m, b, **more: call(i, m, background=b, **more), [image, mapping, below]
    value = noise(3, seed=1)
    return lambda i, m, v, **more: call(i, m, border_value=v, **more), [image, mapping, value]


def gradients(function: Call, given: Sequence[Tensor], twice: bool = True) -> list[Any]:
    """The gradients of a weighted sum of the result, and the gradients of a sum of these."""
    inputs = [x.clone().requires_grad_() for x in given]
    out = function(*inputs)
    weights = noise(*out.shape, seed=2).to(out.dtype) - 0.5
    options = {"create_graph": twice, "allow_unused": True}
    first = torch.autograd.grad(out, inputs, weights, **options)
    found = [None if g is None else g.detach() for g in first]
    if twice:
        slopes = [g for g in first if g is not None and g.requires_grad]
        along = [(g * noise(*g.shape, seed=5).to(g.dtype)).sum() for g in slopes]
        if along:
            found += torch.autograd.grad(sum(along), inputs, allow_unused=True)
    return found


def assert_equal(found: Sequence[Any], wanted: Sequence[Any]) -> None:
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert (a is None) == (b is None)
        assert a is None or (a.dtype == b.dtype and torch.equal(a, b))


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_first_and_second_gradients_are_those_of_exact(arithmetic, interpolation, border):
    """On a second call too, by kernels and by the reference, and unlike gradients of 1.01 times."""
    options: dict[str, Any] = {"interpolation": interpolation, "border": border}
    slopes = 0.0
    for name, backend in ((n, b) for n in CALLS for b in ("auto", "reference")):
        if (name, backend, interpolation) == ("flow", "reference", "lanczos4"):
            continue  # torch adds the gradients of still pixels in another order
        image = image_of("planar" if backend == "auto" else "last", torch.float32)
        function, given = leaves(name, image, border)
        if interpolation == "nearest":  # which has no gradient to the map, and warns of it
            mapping = given.pop(1)
            function = partial(_with_mapping, function, mapping)
        options["backend"] = backend
        wanted = gradients(partial(function, **options), given)
        for _ in range(2):
            found = gradients(partial(function, arithmetic=arithmetic, **options), given)
            assert_equal(found, wanted)
        slopes = max([slopes, *(g.abs().max().item() for g in wanted if g is not None)])
    assert slopes > 0.1


def _with_mapping(function: Call, mapping: Tensor, image: Tensor, fill: Tensor, **more) -> Tensor:
    return function(image, mapping, fill, **more)


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_ramp_has_its_slope(arithmetic, dtype):
    """By hand, on a ramp of slopes 2 and -3."""
    y, x = torch.meshgrid(torch.arange(40.0), torch.arange(50.0), indexing="ij")
    image = (2 * x - 3 * y)[None].to(dtype)
    matrix = torch.tensor([[0.9, 0.1, 12.0], [-0.1, 0.95, 14.0]]).double().requires_grad_()
    out = wk.warp_affine(image, matrix, size=(16, 20), inverse=True, arithmetic=arithmetic)
    (got,) = torch.autograd.grad(out.double().sum(), matrix)
    row = torch.tensor([19 / 2, 15 / 2, 1.0]).double() * 320
    expected = torch.stack([2 * row, -3 * row])
    assert (got - expected).abs().max() <= TOLERANCE["opencv weights"] * expected.abs().max()


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_a_gradient_of_1_01_times_fails(arithmetic, monkeypatch):
    """The tests above would see it: by hand, and beside "exact" by the reference."""

    def scaled(*args, backward=launch.backward, **options):
        return tuple(1.01 * slope for slope in backward(*args, **options))

    monkeypatch.setattr(launch, "backward", scaled)
    with pytest.raises(AssertionError):
        test_a_ramp_has_its_slope(arithmetic, torch.float64)
    function, given = leaves("affine", image_of("planar"), "constant")
    wanted = gradients(partial(function, backend="reference"), given, twice=False)
    found = gradients(partial(function, arithmetic=arithmetic), given, twice=False)
    for a, b in zip(found, wanted, strict=True):
        assert (a - 1.01 * b).abs().max() < 1e-3 * b.abs().max() < (a - b).abs().max()


@pytest.mark.parametrize("border", ["constant", "reflect", "transparent"])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "lanczos4"])
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_forward_mode_is_that_of_exact(arithmetic, interpolation, border):
    for name in CALLS:
        function, given = leaves(name, image_of("planar"), border)
        tangents = [noise(*x.shape, seed=6).to(x.dtype) for x in given]
        found = []
        for chosen in ("exact", arithmetic):
            options = {"interpolation": interpolation, "border": border, "arithmetic": chosen}
            with forward_ad.dual_level():
                duals = [forward_ad.make_dual(*pair) for pair in zip(given, tangents, strict=True)]
                value, tangent = forward_ad.unpack_dual(function(*duals, **options))
            plain = function(*given, **options)
            if chosen != "exact":  # whose forward mode takes the reference's value
                assert torch.equal(value, plain)
            found.append(tangent)
        assert torch.equal(*found)
        assert found[0].abs().max() > 0.1 or name == "singular"


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize("backend", ["auto", "reference"])
def test_torch_funcs_transforms_are_those_of_exact(arithmetic, backend):
    """Also a gradient of a vmap, which hides from the call that its image is tracked."""
    images, weights = noise(2, 3, 7, 9), noise(3, *SIZE, seed=2)
    matrices = TURNS + torch.tensor([0.0, 0, 2.0])

    def loss(image: Tensor, matrix: Tensor, chosen: str) -> Tensor:
        out = wk.warp_affine(image, matrix, size=SIZE, arithmetic=chosen, backend=backend)
        return (out * weights).sum()

    def all_of(chosen: str) -> list[Tensor]:
        f = partial(loss, chosen=chosen)
        each = vmap(grad(f, argnums=(0, 1)))(images, matrices)
        together = grad(lambda *x: vmap(f)(*x).sum(), argnums=(0, 1))(images, matrices)
        leaf = images.clone().requires_grad_()
        taped = torch.autograd.grad(vmap(f)(leaf, matrices).sum(), leaf)
        _, along = jvp(vmap(f), (images, matrices), (images.flip(0), matrices.flip(0)))
        fields = jacfwd(lambda m: f(images[0], m))(matrices[0])
        return [*each, *together, *taped, along, fields]

    assert_equal(all_of(arithmetic), all_of("exact"))
    plain = torch.stack([loss(*pair, arithmetic) for pair in zip(images, matrices, strict=True)])
    torch.testing.assert_close(vmap(partial(loss, chosen=arithmetic))(images, matrices), plain)


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_a_straight_through_gradient_is_that_of_exact(arithmetic):
    for name in ("affine", "affine inverse", "perspective", "singular"):
        function, given = leaves(name, image_of("planar"), "constant")
        found = []
        for chosen in ("exact", arithmetic):
            options = {"image_gradient": "straight_through", "arithmetic": chosen}
            found.append(gradients(partial(function, **options), given))
        assert_equal(*found)
        value = function(*given, image_gradient="straight_through", arithmetic=arithmetic)
        assert torch.equal(value, function(*given, arithmetic=arithmetic))


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_a_singular_matrix_shows_a_pixel_and_has_the_fills_gradient(arithmetic):
    """OpenCV shows pixel (0, 0); "exact" has no source position there."""
    image, matrix = noise(1, 7, 9).requires_grad_(), torch.zeros(2, 3).requires_grad_()
    value = torch.tensor([2.0]).double().requires_grad_()
    out = wk.warp_affine(image, matrix, size=(2, 3), border_value=value, arithmetic=arithmetic)
    near = TOLERANCE["opencv weights"]
    assert (out - image[0, 0, 0]).abs().max() < near
    out.sum().backward()
    assert not image.grad.any()
    assert not matrix.grad.any()
    assert value.grad.item() == 6


def test_no_exact_result_is_computed(monkeypatch):
    """The kernel of "exact" runs only in the backward pass."""

    def fail(*_, **__):
        raise AssertionError("a result of `exact` was computed")

    monkeypatch.setattr(launch, "forward", fail)
    monkeypatch.setattr(launch, "result", fail)
    monkeypatch.setattr(exact_gradient, "with_gradient_of", fail)
    for name in CALLS:
        function, given = leaves(name, image_of("planar"), "constant")
        assert gradients(partial(function, arithmetic="opencv5"), given, twice=False)[0].any() or (
            name == "singular"
        )


def test_nothing_is_recorded_without_a_derivative():
    matrix = TURNS.clone().requires_grad_()
    assert not wk.warp_affine(noise(3, 7, 9), TURNS, arithmetic="opencv4").requires_grad
    with torch.no_grad():
        assert not wk.warp_affine(noise(3, 7, 9), matrix, arithmetic="opencv5").requires_grad
    integer = noise(3, 7, 9, dtype=torch.uint8)
    with pytest.warns(UserWarning, match="no gradient reaches `matrix`"):
        assert not wk.warp_affine(integer, matrix, arithmetic="opencv4").requires_grad
    with pytest.warns(UserWarning, match="nearest"):
        out = wk.warp_affine(noise(3, 7, 9), matrix, interpolation="nearest", arithmetic="opencv5")
    assert not out.requires_grad


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_infinite_pixels_have_the_same_value_and_gradient(arithmetic):
    image = noise(1, 7, 9, dtype=torch.float32)
    image[0, 3, 4] = torch.inf
    for matrix in ([[1.0, 0, 0], [0, 1, 0]], [[1.0, 0, 0.3], [0, 1, 0.1]]):
        plain = wk.warp_affine(image, matrix, arithmetic=arithmetic)
        found = []
        for chosen in (arithmetic, "exact"):
            leaf = image.clone().requires_grad_()
            tracked = wk.warp_affine(leaf, matrix, arithmetic=chosen)
            tracked.sum().backward()
            found.append(leaf.grad)
            if chosen == arithmetic:
                assert torch.equal(plain.nan_to_num(-1), tracked.detach().nan_to_num(-1))
        assert torch.equal(*found)


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize("layout", ["planar", "last"])
def test_requiring_gradients_changes_no_bit(arithmetic, interpolation, layout):
    """Nor the layout, nor whether the caller may write to the result."""
    options = {"size": SIZE, "interpolation": interpolation, "arithmetic": arithmetic}
    image = image_of(layout, torch.float32)
    matrix = TURNS if layout == "last" else TURNS[0]
    plain = wk.warp_affine(image, matrix, **options)
    leaf = image.clone(memory_format=torch.preserve_format).requires_grad_()
    tracked = wk.warp_affine(leaf, matrix, **options)
    assert torch.equal(plain, tracked.detach())
    assert plain.stride() == tracked.stride()
    tracked[..., 0] = 0.0
    tracked.mul_(2).sum().backward()
    assert leaf.grad.any()


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_nonfinite_points_get_no_gradient(arithmetic):
    image, value = noise(1, 7, 9).requires_grad_(), torch.tensor([2.0]).double().requires_grad_()
    points = torch.full((2, 3, 2), torch.nan).double().requires_grad_()
    out = wk.remap(image, points, border="replicate", border_value=value, arithmetic=arithmetic)
    out.sum().backward()
    assert torch.equal(image.grad, torch.zeros_like(image))
    assert torch.equal(points.grad, torch.zeros_like(points))
    assert value.grad.item() == 6
