"""Functions on sharded DTensors in several processes: results, gradients, errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Placement, Replicate, Shard

import warpkit as wk
import warpkit.distributed
from examples.attack_distributed import Patch, ShardedBatches, own_loss, sharded
from examples.photographs import Crops, learn
from tests.support.inputs import affine_matrices, noise
from tests.support.processes import Processes
from tests.support.tolerances import TOLERANCE

WHOLE, PLAIN = "whole", "plain"
"""A DTensor that is replicated; a tensor that is no DTensor."""
IMAGES = noise(5, 3, 6, 7, seed=1)
TURNS = affine_matrices()["batch of turns"][0] + noise(5, 2, 3, seed=2) / 9
TILTS = torch.cat((TURNS, torch.tensor([[[0.02, -0.03, 1.0]]] * 5)), 1)
POINTS = noise(5, 4, 3, 2, seed=3) * 8 - 1
BOXES = torch.tensor([[0.3, 1, 4, 5], [2, 2, 7, 6], [1, 0, 3.5, 4], [3, 1, 6, 6], [0, 0, 5, 3]])
BOXES = BOXES.double()
RECTANGLE = torch.tensor([0.2, 1, 6.1, 5.5]).double()
INDEX = torch.tensor([1, 0, 2, 3, 4])
PATCHES = noise(5, 3, 3, 4, seed=4)
ON_BOXES = wk.box_to_matrix(BOXES, (3, 4), angle=20.0)


class Case(NamedTuple):
    """A call and the placement of its tensors: a sharded dimension, WHOLE or PLAIN."""

    function: Callable[..., Any]
    tensors: dict[str, tuple[Tensor, int | str]]
    options: Mapping[str, Any] = MappingProxyType({})


VALUES = noise(5, 3, seed=5)


def in_a_row(a: Tensor, b: Tensor) -> Tensor:
    return wk.compose(a, b)


CASES = {
    "images and matrices": Case(wk.warp_affine, {"image": (IMAGES, 0), "matrix": (TURNS, 0)}),
    "one matrix": Case(wk.warp_affine, {"image": (IMAGES, 0), "matrix": (TURNS[0], WHOLE)}),
    "one image": Case(
        wk.warp_affine,
        {"image": (IMAGES[0], PLAIN), "matrix": (TURNS, 0), "border_value": (VALUES, WHOLE)},
    ),
    "matrices to be split": Case(
        wk.warp_affine,
        {"image": (IMAGES, 0), "matrix": (TURNS, PLAIN), "border_value": (VALUES[0], PLAIN)},
        {"interpolation": "bicubic", "size": (4, 9)},
    ),
    "every image under every matrix": Case(
        wk.warp_perspective, {"image": (IMAGES[:, None], 0), "matrix": (TILTS[:2], WHOLE)}
    ),
    "the second dimension of a batch": Case(
        wk.warp_affine, {"image": (IMAGES[:2, None], WHOLE), "matrix": (TURNS, 0)}
    ),
    "background": Case(
        wk.warp_affine,
        {"image": (IMAGES, 0), "matrix": (TURNS, 0), "background": (IMAGES.flip(0), 0)},
        {"border": "transparent"},
    ),
    "antialias": Case(
        wk.warp_affine,
        {"image": (IMAGES, 0), "matrix": (TURNS * 0.3, 0)},
        {"antialias": 3, "border": "reflect"},
    ),
    "nothing sharded": Case(wk.warp_affine, {"image": (IMAGES, WHOLE), "matrix": (TURNS, PLAIN)}),
    "one image, one process empty": Case(
        wk.warp_affine, {"image": (IMAGES[:1], 0), "matrix": (TURNS[0], WHOLE)}
    ),
    "remap": Case(wk.remap, {"image": (IMAGES, 0), "points": (POINTS, 0)}),
    "resized": Case(partial(wk.resize, size=(4, 3)), {"image": (IMAGES, 0)}),
    "a box resized": Case(
        partial(wk.resize, size=(3, 4)), {"image": (IMAGES, 0), "box": (RECTANGLE, WHOLE)}
    ),
    "sample_pixels": Case(
        wk.sample_pixels, {"image": (IMAGES, 0), "points": (POINTS[0, 0], PLAIN)}
    ),
    "crops of images in place": Case(
        partial(wk.crop_patches, size=(3, 2)),
        {"images": (IMAGES, 0), "boxes": (BOXES, 0), "image_index": (INDEX, 0)},
    ),
    "crops of whole images": Case(
        partial(wk.crop_patches, size=(3, 2)),
        {
            "images": (IMAGES, WHOLE),
            "boxes": (BOXES, 0),
            "image_index": (INDEX.flip(0), PLAIN),
            "border_value": (VALUES, 0),
        },
    ),
    "patches in place": Case(
        wk.paste_patches,
        {
            "images": (IMAGES, 0),
            "patches": (PATCHES, 0),
            "matrices": (ON_BOXES, 0),
            "image_index": (INDEX, 0),
            "opacity": (noise(5, seed=6), 0),
        },
    ),
    "one patch on every image": Case(
        wk.paste_patches,
        {
            "images": (IMAGES, 0),
            "patches": (PATCHES[0], PLAIN),
            "matrices": (ON_BOXES, PLAIN),
            "image_index": (INDEX.flip(0), PLAIN),
            "mask": (noise(1, 3, 4, seed=7), PLAIN),
        },
    ),
    "objects of one process alone": Case(
        wk.paste_patches,
        {
            "images": (IMAGES, 0),
            "patches": (PATCHES[0], PLAIN),
            "matrices": (ON_BOXES, WHOLE),
            "image_index": (INDEX * 0, PLAIN),
        },
    ),
    "objects transformed": Case(
        wk.transform_patches,
        {
            "images": (IMAGES, 0),
            "boxes": (BOXES, PLAIN),
            "matrices": (TURNS, WHOLE),
            "image_index": (INDEX.flip(0), WHOLE),
            "border_value": (VALUES, PLAIN),
        },
    ),
    "objects transformed in place": Case(
        wk.transform_patches,
        {
            "images": (IMAGES, 0),
            "boxes": (BOXES, 0),
            "matrices": (TURNS, 0),
            "image_index": (INDEX, 0),
            "opacity": (noise(1, seed=6)[0], PLAIN),
        },
    ),
    "matrices of boxes": Case(
        partial(wk.box_to_matrix, size=(3, 4)),
        {"boxes": (BOXES, 0), "angle": (VALUES[:, 0], PLAIN)},
    ),
    "matrices of angles": Case(
        partial(wk.rotation_matrix, (3.0, 2.0)), {"angle": (VALUES[:, 0] * 90, 0)}
    ),
    "matrices of parts": Case(
        wk.affine_matrix, {"angle": (VALUES[:, 0], 0), "shear": (VALUES[:, :2], PLAIN)}
    ),
    "matrices in a row": Case(
        lambda a, b: wk.compose(a, b), {"a": (TURNS, 0), "b": (TILTS, WHOLE)}
    ),
    "inverses": Case(wk.invert, {"matrix": (TILTS, 0)}),
    "thetas": Case(partial(wk.to_theta, size_in=(6, 7), size_out=(6, 7)), {"matrix": (TURNS, 0)}),
    "a point through matrices": Case(
        wk.transform_points, {"matrix": (TURNS, 0), "points": (VALUES[0, :2], WHOLE)}
    ),
    "quantized": Case(wk.quantize, {"image": (IMAGES, 0)}),
    "columns looked up": Case(
        wk.indexing.linear_lookup, {"array": (noise(4, 5), 1), "index": (noise(3, 2) * 5, WHOLE)}
    ),
    "an index in parts": Case(
        wk.indexing.linear_lookup,
        {"array": (noise(3, 4, 2), PLAIN), "index": (noise(5, 2) * 5, 0)},
        {"dim": 1},
    ),
    "weights in parts": Case(
        wk.indexing.superposition_lookup,
        {"array": (noise(4, 5), WHOLE), "weights": (noise(5, 4), 0)},
    ),
    "soft_one_hot": Case(partial(wk.indexing.soft_one_hot, length=4), {"index": (noise(5) * 4, 0)}),
    "residuals of columns": Case(
        wk.indexing.residual_lookup, {"array": (noise(4, 5), 1), "index": (noise(3) * 4, WHOLE)}
    ),
    "residuals of an index": Case(
        wk.indexing.residual_lookup, {"array": (noise(4, 5), PLAIN), "index": (noise(3) * 4, 0)}
    ),
    "columns assigned": Case(
        wk.indexing.assign,
        {"array": (noise(4, 5), 1), "index": (noise(3) * 4, WHOLE), "value": (noise(3, 5), PLAIN)},
    ),
    "columns moved": Case(
        wk.indexing.superposition_assign,
        {"array": (noise(5, 4), 0), "weights": (noise(4), PLAIN), "value": (noise(5), 0)},
        {"dim": 1},
    ),
    "lookup_2d": Case(
        wk.indexing.lookup_2d,
        {
            "array": (noise(4, 5, 3), WHOLE),
            "row_weights": (noise(5, 4), 0),
            "column_weights": (noise(5), WHOLE),
        },
    ),
    "assign_2d": Case(
        wk.indexing.assign_2d,
        {
            "array": (noise(4, 5, 3), 2),
            "value": (noise(3), WHOLE),
            "row_weights": (noise(4), PLAIN),
            "column_weights": (noise(5), WHOLE),
        },
    ),
}


def placed(value: Tensor, where: int | str, mesh: DeviceMesh, dims: tuple[int, ...]) -> Tensor:
    """A leaf tensor, sharded over some dimensions of the mesh."""
    if where != PLAIN:
        placements: list[Placement] = [Replicate()] * mesh.ndim
        value = DTensor.from_local(value, mesh, list(placements))
        for m in dims if isinstance(where, int) else ():
            placements[m] = Shard(where)
        value = value.redistribute(mesh, placements)
    leaf = value.detach().clone()
    return leaf.requires_grad_() if leaf.is_floating_point() else leaf


def full(value: Tensor) -> Tensor:
    return value.full_tensor() if isinstance(value, DTensor) else value


def differentiates_twice(mesh: DeviceMesh) -> bool:
    """Whether this torch gets the second gradient of x^3 right through `to_local`; 2.7 does not."""
    placements = [Shard(0)] * mesh.ndim
    leaf = DTensor.from_local(torch.full((2,), 2.0), mesh, placements).requires_grad_()
    cube = DTensor.from_local(leaf.to_local() ** 3, mesh, placements)
    (gradient,) = torch.autograd.grad(full(cube.sum()), leaf, create_graph=True)
    try:
        (second,) = torch.autograd.grad(full((gradient * gradient).sum()), leaf)
    except RuntimeError:
        return False
    return bool((full(second) == 36 * 2.0**3).all())


def outcome(case: Case, inputs: dict[str, Tensor], second: bool) -> list[Tensor]:
    """Results and gradients of both orders, each gathered into a full tensor."""
    result = case.function(**inputs, **case.options)
    results = list(result) if isinstance(result, tuple) else [result]
    leaves = [leaf for leaf in inputs.values() if leaf.requires_grad]
    loss = full(torch.stack([full((r * r).sum()) for r in results]).sum())
    gradients = torch.autograd.grad(loss, leaves, create_graph=second)
    for leaf, gradient in zip(leaves, gradients, strict=True):
        assert getattr(gradient, "placements", None) == getattr(leaf, "placements", None)
    if second:
        loss = torch.stack([full((g * g).sum()) for g in gradients]).sum()
        gradients += torch.autograd.grad(loss, leaves)
    return [full(x).detach() for x in (*results, *gradients)]


def compare(name: str, shape: tuple[int, ...], dims: tuple[int, ...], second: bool) -> list[float]:
    """The largest difference of each result and gradient, relative to its largest value."""
    case = CASES[name]
    mesh = init_device_mesh("cpu", shape)
    second = second and differentiates_twice(mesh)
    inputs = {a: placed(value, where, mesh, dims) for a, (value, where) in case.tensors.items()}
    got = outcome(case, inputs, second)
    inputs = {a: placed(value, PLAIN, mesh, dims) for a, (value, _) in case.tensors.items()}
    expected = outcome(case, inputs, second)
    assert [x.shape for x in got] == [x.shape for x in expected]
    pairs = [(a, b) for a, b in zip(got, expected, strict=True) if b.numel()]
    return [((a - b).abs().max() / b.abs().max().clamp(min=1)).item() for a, b in pairs]


@pytest.mark.parametrize("name", CASES)
def test_shards_give_the_results_of_one_process(processes: Processes, name: str):
    """Values and gradients of first and second order, also if a process has no image."""
    for found in processes.run(compare, name, (4,), (0,), True):
        assert max(found) <= TOLERANCE["shards float64"], found


@pytest.mark.parametrize(
    "name", ["matrices to be split", "objects transformed", "columns assigned"]
)
@pytest.mark.parametrize("dims", [(1,), (0, 1)])
def test_a_two_dimensional_mesh_gives_the_results_of_one_process(
    processes: Processes, name: str, dims: tuple[int, ...]
):
    """Sharded over one dimension and replicated over the other, or sharded over both."""
    for found in processes.run(compare, name, (2, 2), dims, False):
        assert max(found) <= TOLERANCE["shards float64"], found


def two_axes(copies: int) -> float:
    """Images are sharded over one dimension of the mesh, their matrices over the other."""
    mesh = init_device_mesh("cpu", (2, 2))
    images, matrices = IMAGES[:, None].repeat(1, copies, 1, 1, 1), TURNS[:3]
    own = [placed(images, 0, mesh, (0,)), placed(matrices, 0, mesh, (1,))]
    result = wk.warp_affine(*own)
    assert isinstance(result, DTensor)
    assert result.placements == (Shard(0), Shard(1))
    return (result.full_tensor() - wk.warp_affine(images, matrices)).abs().max().item()


@pytest.mark.parametrize("copies", [1, 3])
def test_every_dimension_of_a_batch_may_be_sharded(processes: Processes, copies: int):
    """Also if each process holds its part of the other dimension."""
    assert processes.run(two_axes, copies) == [0.0] * 4


def integers() -> bool:
    """An 8-bit image, boxes in an array and indices in a list."""
    mesh = init_device_mesh("cpu", (4,))
    images = noise(5, 3, 6, 7, dtype=torch.uint8)
    given = (BOXES.numpy(), TURNS.clone().requires_grad_(), INDEX.flip(0).tolist())
    with pytest.warns(UserWarning, match="no gradient reaches `matrices`"):
        result = wk.transform_patches(placed(images, 0, mesh, (0,)), *given)
    with pytest.warns(UserWarning, match="no gradient reaches `matrices`"):
        alone = wk.transform_patches(images, *given)
    return torch.equal(full(result), alone)


def test_integers_get_no_gradient(processes: Processes):
    assert processes.run(integers) == [True] * 4


def channels_last() -> tuple[bool, bool]:
    mesh = init_device_mesh("cpu", (4,))
    images = placed(IMAGES.to(memory_format=torch.channels_last), 0, mesh, (0,))
    result = wk.warp_affine(images, TURNS.clone().requires_grad_())
    assert isinstance(result, DTensor)
    last = torch.empty(result.shape).to(memory_format=torch.channels_last)
    return result.stride() == last.stride(), bool((result.sum() * 0 == 0).full_tensor())


def test_channels_last_and_its_stride_are_kept(processes: Processes):
    """A process without images has no strides to compare."""
    assert processes.run(channels_last)[:3] == [(True, True)] * 3


def attack_gradient(batch: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """A patch's gradient summed over all processes, and that of the whole batch in this one."""
    mesh = init_device_mesh("cpu", (4,))
    model, patch = learn(Crops(20, seed=0), steps=3).to(dtype), Patch(8).to(dtype)
    # a convolution's last bits depend on the batch, and a ReLU depends on these bits
    if dtype == torch.float32:
        torch.manual_seed(0)
        model = nn.Sequential(nn.AvgPool2d(8), nn.Flatten(), nn.Linear(3 * 36, 5))
    crops = Crops(20, seed=1).images.to(dtype)
    own = ShardedBatches(20, batch, range(1, 2), 5, mesh)
    (rows,) = own
    own_loss(model, sharded(crops[rows], batch, mesh), patch(), 7).backward()
    whole = own_loss(model, crops[own.batch_at(1)], patch(), 7)
    assert patch.logits.grad is not None
    return patch.logits.grad, torch.autograd.grad(whole, patch.logits)[0]


@pytest.mark.parametrize("batch", [8, 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_gradient_to_a_patch_equals_the_whole_batchs(
    processes: Processes, batch: int, dtype: torch.dtype
):
    """Relative to the largest entry; an error of 1 % would be found."""
    limit = TOLERANCE[f"shards {str(dtype).removeprefix('torch.')}"]
    for gradient, whole in processes.run(attack_gradient, batch, dtype):
        scale = whole.abs().max()
        assert scale > 0
        assert (gradient - whole).abs().max() <= limit * scale
        assert (1.01 * gradient - whole).abs().max() > limit * scale
