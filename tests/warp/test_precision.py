"""Half types, autocast, threads, and no unnecessary work."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import warpkit as wk
from tests.support.inputs import BACKENDS, noise
from tests.support.tolerances import TOLERANCE

TURN = torch.tensor([[0.94, 0.21, 13.7], [-0.17, 1.03, -21.4]])
TILT = torch.cat((TURN, torch.tensor([[1e-4, -2e-4, 1.0]])))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_images_of_400_x_640_are_accurate_to_their_rounding(dtype, interpolation, backend):
    """Half-precision coordinates would be off by up to 0.25 (float16) or 2 pixels (bfloat16)."""
    image = noise(1, 400, 640, dtype=dtype)
    for function, matrix in ((wk.warp_affine, TURN), (wk.warp_perspective, TILT)):
        options = {"interpolation": interpolation, "backend": backend}
        half = function(image, matrix, **options)
        single = function(image.float(), matrix, **options)
        assert half.dtype == dtype
        assert torch.equal(half, single.to(dtype))
        name = str(dtype).removeprefix("torch.")
        assert (half.float() - single).abs().max() <= TOLERANCE[name]
    identity = wk.warp_affine(image, torch.eye(2, 3), backend=backend)
    assert (identity.float() - image.float()).abs().max() <= TOLERANCE[name]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_gradients_are_rounded_once(dtype):
    image = noise(2, 20, 30, dtype=dtype).requires_grad_()
    wide = image.detach().float().requires_grad_()
    weight = noise(2, 20, 30, dtype=dtype)
    wk.warp_affine(image, TURN).backward(weight)
    wk.warp_affine(wide, TURN).backward(weight.float())
    assert torch.equal(image.grad, wide.grad.to(dtype))


def everything(image: Tensor, matrix: Tensor) -> list[Tensor]:
    """All functions that multiply matrices."""
    square = torch.tensor([[0.0, 0], [1, 0], [1.1, 1], [0, 1]])
    both = wk.compose(matrix, wk.invert(matrix), wk.affine_matrix(angle=torch.tensor(12.0)))
    theta = wk.to_theta(matrix, image.shape[-2:], (30, 40))
    return [
        wk.warp_affine(image, matrix),
        wk.warp_affine(image, matrix, backend="grid_sample"),
        wk.warp_affine(image, matrix, antialias=2, image_gradient="straight_through"),
        wk.warp_perspective(image, wk.perspective_from_points(square, square * 1.3 + 2)),
        wk.transform_points(matrix, square * 300),
        wk.from_theta(theta, image.shape[-2:], (30, 40)),
        wk.rotation_matrix((300.0, 200.0), torch.tensor(33.0)),
        wk.affine_from_points(square[:3] * 200, square[1:] * 300),
        wk.box_to_matrix(square.flatten()[2:6] * 100, (30, 40)),
        both,
        theta,
    ]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_changes_nothing(dtype):
    image = noise(2, 40, 64).float()
    plain = everything(image, TURN)
    with torch.autocast("cpu", dtype):
        cast = everything(image, TURN)
    for got, want in zip(cast, plain, strict=True):
        assert got.dtype == torch.float32
        assert torch.equal(got, want)


@pytest.fixture
def threads():
    """Restore the number of threads afterwards."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("antialias", [False, True], ids=["plain", "antialias"])
def test_results_have_the_same_bits_at_every_run_and_for_any_number_of_threads(
    backend, antialias, threads
):
    # 40,000 outputs and more; from 32,768 on, torch splits one sum among its threads
    image, cotangent = noise(1, 2, 200, 210), noise(2, 2, 200, 210, seed=1)
    value = torch.tensor(0.3, dtype=torch.float64)
    matrices = torch.stack((TURN, TURN * 0.6)).double()
    for function, matrix in (
        (wk.warp_affine, matrices[1]),
        (wk.warp_affine, matrices),
        (wk.warp_perspective, TILT.double()),
    ):
        runs = []
        for count in (1, 1, 2, 3):
            torch.set_num_threads(count)
            inputs = [t.clone().requires_grad_() for t in (image, matrix, value)]
            options = {"border_value": inputs[2], "backend": backend, "antialias": antialias}
            result = function(*inputs[:2], **options)
            grads = torch.autograd.grad(result, inputs, cotangent[: len(result)])
            runs.append([result.detach(), *grads])
        for run in runs[1:]:
            assert all(torch.equal(a, b) for a, b in zip(run, runs[0], strict=True))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "options", [{}, {"antialias": True}, {"image_gradient": "straight_through"}], ids=str
)
def test_two_backward_passes_through_one_graph_agree(backend, options):
    inputs = [noise(2, 9, 11).requires_grad_(), (TURN * 0.5).double().requires_grad_()]
    result = wk.warp_affine(*inputs, backend=backend, **options)
    cotangent = noise(2, 9, 11, seed=1)
    first = torch.autograd.grad(result, inputs, cotangent, retain_graph=True)
    kept = [g.clone() for g in first]
    other = torch.autograd.grad(result, inputs, 2 * cotangent, retain_graph=True)
    again = torch.autograd.grad(result, inputs, cotangent)
    for a, b, c, d in zip(first, again, kept, other, strict=True):
        assert torch.equal(a, b)
        assert torch.equal(a, c)  # returned gradients were not modified
        torch.testing.assert_close(d, 2 * a, rtol=1e-14, atol=0)


def saved_by(function) -> list[Tensor]:
    """The tensors that autograd saves for the backward pass of a call."""
    kept: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        function()
    return kept


HOLDS_THE_IMAGE = {
    "grid_sample": "torch's grid_sampler saves image and grid whichever gradient was asked for",
    "reference": "torch's gather saves its input, a view of the image, to know its shape",
}
"""index_select and indexing do not, but take 1.9 to 7 times as long as gather and its backward."""


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic"])
def test_tensors_that_the_images_gradient_does_not_need_are_not_saved(interpolation, backend):
    matrix = TURN.clone()
    options = {"interpolation": interpolation, "backend": backend, "size": (5, 8)}

    def kept_for(image: Tensor, matrix: Tensor) -> list[Tensor]:
        return saved_by(lambda: wk.warp_affine(image, matrix, **options))

    image = noise(2, 6, 7).requires_grad_()
    kept = kept_for(image, matrix)
    held = {tensor.untyped_storage().data_ptr() for tensor in kept}
    assert (image.untyped_storage().data_ptr() in held) == (backend in HOLDS_THE_IMAGE)
    # only the gradient to the matrix needs the sampled values, (2, 5, 8)
    assert not any(values_of(tensor) for tensor in kept)
    if backend == "reference" and interpolation != "nearest":
        assert any(values_of(tensor) for tensor in kept_for(image, matrix.requires_grad_()))


def values_of(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tuple(tensor.shape[-3:]) == (2, 5, 8)


@pytest.mark.parametrize("backend", BACKENDS)
def test_nothing_is_saved_where_nothing_requires_a_gradient(backend):
    image, matrix = noise(2, 6, 7), TURN.clone()
    assert saved_by(lambda: wk.warp_affine(image, matrix, backend=backend)) == []
    with torch.no_grad():
        tracked = image.clone().requires_grad_()
        assert saved_by(lambda: wk.warp_affine(tracked, matrix, backend=backend)) == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_that_are_not_requested_are_not_computed(backend):
    """The image's gradient runs no node that leads to the matrix, and vice versa."""
    image, matrix = noise(2, 6, 7), TURN.double()
    for place in (0, 1):
        inputs = [image.clone(), matrix.clone()]
        inputs[place].requires_grad_()
        result = wk.warp_affine(*inputs, backend=backend)
        leaves, nodes, seen = set(), [result.grad_fn], set()
        while nodes:
            node = nodes.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            if hasattr(node, "variable"):
                leaves.add(node.variable.data_ptr())
            nodes += [parent for parent, _ in node.next_functions]
        assert leaves == {inputs[place].data_ptr()}
        names = {node.name() for node in seen}
        if backend == "reference":
            assert ("GatherBackward0" in names) == (place == 0)  # the image's gradient
            assert ("SubBackward0" in names) == (place == 1)  # position - floor
