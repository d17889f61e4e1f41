"""The same warps under torch.compile, torch.export and in onnxruntime."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from pkgutil import resolve_name

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

import warpkit as wk
import warpkit.opencv as cv2
from tests.support.any_size import any_size
from tests.support.inputs import BACKENDS, noise
from tests.support.tolerances import TOLERANCE
from warpkit.flow.solving import solve_by_reflections
from warpkit.nn import SpatialTransformer

MATRIX = torch.tensor([[[0.9, 0.2, 0.3], [-0.15, 1.1, -0.4]], [[1.3, -0.3, 0.6], [0.2, 0.8, 0.1]]])
HOMOGRAPHY = torch.cat((MATRIX, torch.tensor([[[0.02, -0.03, 1.0]]] * 2)), 1)
GEOMETRY = {"warp_affine": MATRIX, "warp_perspective": HOMOGRAPHY}

pytestmark = pytest.mark.usefixtures("fresh_compiler")


def loss_and_gradients(function, image: Tensor, matrix: Tensor) -> list[Tensor]:
    inputs = [t.clone().requires_grad_() for t in (image, matrix)]
    result = function(*inputs)
    return [result.detach(), *torch.autograd.grad(result.square().sum(), inputs)]


def assert_same(function, compiled, image: Tensor, matrix: Tensor) -> None:
    expected = loss_and_gradients(function, image, matrix)
    for got, want in zip(loss_and_gradients(compiled, image, matrix), expected, strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=TOLERANCE["compiled float32"])


def test_inductor_compiles_a_warp_to_one_graph_for_any_size():
    """One backend, since this takes half a minute; the next test traces all of them."""

    def warp(image: Tensor, matrix: Tensor) -> Tensor:
        return wk.warp_affine(image, matrix)

    compiled = torch.compile(warp, fullgraph=True, dynamic=True)
    # not a matrix's sizes: torch treats equal sizes as one, and a matrix's 2 and 3 are fixed
    assert_same(warp, compiled, noise(4, 5, 8, 6).float(), MATRIX.repeat(2, 1, 1))
    with torch._dynamo.config.patch(error_on_recompile=True):
        assert_same(warp, compiled, noise(6, 4, 9, 7).float(), MATRIX.repeat(3, 1, 1))


def test_ten_functions_compile_in_one_process():
    """torch.compile rejects a ninth version of a code object, and all share one wrapper."""
    image, points = noise(1, 4, 5), noise(4, 2)
    calls = {
        "invert": (MATRIX,),
        "compose": (MATRIX, MATRIX),
        "transform_points": (MATRIX[0], points),
        "rotation_matrix": (points, points[:, 0]),
        "to_theta": (MATRIX, (4, 5), (4, 5)),
        "from_theta": (MATRIX, (4, 5), (4, 5)),
        "sample_pixels": (image, points),
        "warp_affine": (image, MATRIX),
        "warp_perspective": (image, HOMOGRAPHY),
        "resize": (image, (3, 3)),
    }
    for name, given in calls.items():
        function = getattr(wk, name)
        compiled = torch.compile(function, backend="eager", fullgraph=True)
        assert torch.equal(compiled(*given), function(*given)), name


def test_calls_outside_a_compiled_function_do_not_recompile_it():
    """The cache of plain calls must not become a guard of the compiled function."""

    def warp(image: Tensor, matrix: Tensor) -> Tensor:
        return wk.warp_affine(image, matrix, border="reflect")

    pixels = np.zeros((6, 5, 3), np.uint8)
    cv2.warpAffine(pixels, np.eye(2, 3), (5, 4))  # Dynamo guards such keys by number
    compiled = torch.compile(warp, backend="aot_eager", fullgraph=True, dynamic=True)
    image = noise(2, 3, 5, 6).float()
    assert_same(warp, compiled, image, MATRIX)
    cv2.warpAffine(pixels, np.eye(2, 3), (4, 7))
    with torch._dynamo.config.patch(error_on_recompile=True):
        assert_same(warp, compiled, image, MATRIX)


def test_compile_makes_one_graph_with_sharding_rules_loaded():
    """The rules check every argument; before torch 2.10, Dynamo did not support `|` of types."""
    assert resolve_name("warpkit.distributed").Shardable

    def warp(image: Tensor, matrix: Tensor) -> Tensor:
        return wk.warp_affine(image, matrix, size=(4, 5))

    compiled = torch.compile(warp, backend="aot_eager", fullgraph=True)
    assert_same(warp, compiled, noise(2, 3, 5, 6).float(), MATRIX)


@pytest.mark.parametrize(
    ("name", "backend", "options"),
    # each option with one backend; test_exported_warps_accept_batches_of_any_size has all of them
    [
        ("warp_perspective", "reference", {"border": "reflect_101"}),
        ("warp_affine", "grid_sample", {"border_value": (0.2, 0.4, 0.6), "antialias": 2}),
        ("warp_affine", "cpu", {"image_gradient": "straight_through", "border": "replicate"}),
    ],
)
def test_aot_eager_traces_every_option_to_one_graph(name, backend, options):
    def warp(image: Tensor, matrix: Tensor) -> Tensor:
        return getattr(wk, name)(image, matrix, size=(3, 4), backend=backend, **options)

    compiled = torch.compile(warp, fullgraph=True, backend="aot_eager")
    assert_same(warp, compiled, noise(2, 3, 5, 6).float(), GEOMETRY[name])


@pytest.mark.parametrize(
    ("arithmetic", "interpolation", "backend"),
    [  # AOT would trace the same operations once more, which takes 5 s for the 16 taps of bicubic
        ("opencv4", "bilinear", "aot_eager"),
        ("opencv5", "bicubic", "eager"),
    ],
)
def test_opencvs_pixels_and_gradients_trace_to_one_graph(arithmetic, interpolation, backend):
    def warp(image: Tensor, matrix: Tensor) -> Tensor:
        return wk.warp_affine(image, matrix, arithmetic=arithmetic, interpolation=interpolation)

    compiled = torch.compile(warp, fullgraph=True, backend=backend)
    assert_same(warp, compiled, noise(2, 3, 5, 6).float(), MATRIX[0])


def test_other_operations_trace_to_one_graph():
    points = noise(2, 3, 4, 2).float() * 5

    def run(image: Tensor, points: Tensor) -> Tensor:
        sampled = wk.sample_pixels(image, points.flatten(1, 2)).unflatten(-1, (3, 4))
        return wk.quantize(wk.straight_through(sampled, wk.remap(image, points)))

    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
    assert_same(run, compiled, noise(2, 3, 5, 6).float(), points)


SHRINKING = torch.tensor([[[0.3, 0.02, 1], [0.01, 0.4, 2]], [[0.8, 0, 1], [0.1, 0.9, 2]]])
ANTIALIASED: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Tensor]] = {
    "affine": (lambda i, m: wk.warp_affine(i, m, size=(9, 12), antialias=True), SHRINKING),
    "perspective": (
        lambda i, m: wk.warp_perspective(i, m, antialias=True, border="reflect"),
        torch.cat((SHRINKING, torch.tensor([1e-4, 1e-3, 1]).expand(2, 1, 3)), 1),
    ),
    "spline": (
        lambda i, m: wk.warp_affine(i, m, antialias=True, interpolation="spline3"),
        SHRINKING,
    ),
    "points": (lambda i, p: wk.remap(i, p, antialias=True, border_value=0.5), noise(6, 7, 2) * 50),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", ANTIALIASED)
def test_antialias_true_reads_its_samples_when_a_graph_runs(name, dtype):
    warp, mapping = ANTIALIASED[name]
    image = noise(2, 3, 30, 40).to(dtype)

    def results(call: Callable[[Tensor, Tensor], Tensor], mapping: Tensor) -> list[Tensor]:
        inputs = image.clone().requires_grad_(), mapping.clone().requires_grad_()
        result = call(*inputs)
        return [result.detach(), *torch.autograd.grad(result.float().square().sum(), inputs)]

    compiled = torch.compile(warp, fullgraph=True, backend="aot_eager")
    for given in (mapping, mapping * 1.5):  # another number of samples, and the same graph
        wanted = results(warp, given)
        assert all(map(torch.equal, results(compiled, given), wanted))
        assert all(map(torch.Tensor.any, wanted))


def test_an_antialiased_warp_passes_opcheck():
    image, fill = noise(2, 3, 8, 9, dtype=torch.float32), torch.zeros(1)
    for mapping in (SHRINKING.double(), noise(4, 5, 2) * 8):
        options = [4, 5], "bilinear", "constant", "warp_affine"
        forward = torch.ops.warpkit.mean_warp.default
        torch.library.opcheck(forward, (image, mapping, fill, *options))
        grad, wanted = noise(2, 3, 4, 5, dtype=torch.float32), [True, True, False]
        backward = torch.ops.warpkit.mean_warp_backward.default
        torch.library.opcheck(backward, (grad, image, mapping, fill, *options, wanted))


class Warps(nn.Module):
    """Several warps as a module, as exporters require; their fixed cost is paid once."""

    def __init__(self, *warps: tuple[str, dict]) -> None:
        super().__init__()
        self.warps = warps

    def forward(self, image: Tensor, *matrices: Tensor) -> list[Tensor]:
        pairs = zip(self.warps, matrices, strict=True)
        return [getattr(wk, name)(image, m, **options) for (name, options), m in pairs]


@pytest.mark.parametrize("strict", [True, False])
def test_exported_warps_accept_batches_of_any_size(strict):
    module = Warps(*(("warp_affine", {"backend": b, "border": "replicate"}) for b in BACKENDS))
    batch = torch.export.Dim("batch", min=1, max=64)
    arguments = (noise(2, 3, 5, 6).float(), *[MATRIX] * len(BACKENDS))
    dynamic = ({0: batch}, ({0: batch},) * len(BACKENDS))
    program = torch.export.export(module, arguments, dynamic_shapes=dynamic, strict=strict)
    many = (noise(4, 3, 5, 6, seed=2).float(), *[MATRIX.repeat(2, 1, 1)] * len(BACKENDS))
    pairs = zip(program.module()(*many), module(*many), strict=True)
    for got, expected in pairs:
        torch.testing.assert_close(got, expected, rtol=0, atol=0)


@pytest.mark.parametrize("strict", [True, False])
def test_crops_compile_to_one_graph_and_export(strict):
    class Crop(nn.Module):
        def forward(self, images: Tensor, boxes: Tensor, index: Tensor) -> Tensor:
            return wk.crop_patches(images, boxes, index, (3, 2))

    boxes = torch.tensor([[0.5, 1.0, 4.0, 3.5], [2.0, 0.0, 5.0, 4.0], [1.0, 1.0, 2.0, 2.0]])
    arguments = (noise(2, 3, 5, 6).float(), boxes, torch.tensor([0, 1, 1]))
    expected, near = Crop()(*arguments), {"rtol": 0, "atol": TOLERANCE["compiled float32"]}
    program = torch.export.export(Crop(), arguments, strict=strict)
    torch.testing.assert_close(program.module()(*arguments), expected, **near)
    compiled = torch.compile(Crop(), backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(*arguments), expected, **near)


def test_onnxruntime_gives_the_same_warps():
    chosen = [
        # the transformers below use bilinear and a constant border, by this backend under an
        # affine matrix, by the default one under a perspective
        ("warp_affine", "nearest", "replicate"),
        ("warp_perspective", "bicubic", "reflect_101"),
    ]
    module = Warps(
        *(
            (name, {"backend": "grid_sample", "interpolation": interpolation, "border": border})
            for name, interpolation, border in chosen
        )
    )
    matrices = [GEOMETRY[name] for name, _, _ in chosen]
    assert_onnxruntime_agrees(module, noise(2, 3, 5, 6).float(), *matrices)


@pytest.mark.parametrize(
    ("dtype", "size", "options"),
    [  # both sizes shrink one axis and enlarge the other
        (torch.float32, (4, 9), {}),
        (torch.float32, (11, 3), {"interpolation": "bicubic"}),
        (torch.float32, (4, 9), {"interpolation": "nearest"}),
        (torch.uint8, (4, 9), {"interpolation": "bicubic", "arithmetic": "pillow"}),
        (torch.uint8, (11, 3), {"interpolation": "area", "arithmetic": "opencv5"}),
    ],
)
def test_onnxruntime_resizes_by_the_default_backend(dtype, size, options):
    class Resized(nn.Module):
        def forward(self, image: Tensor) -> list[Tensor]:
            return [wk.resize(image, size, **options)]

    image = noise(2, 3, 7, 5, dtype=dtype)
    wk.resize(image, (2, 2))  # kernels are available but not used
    assert_onnxruntime_agrees(Resized(), image, by="")


def test_selecting_kernels_is_rejected_in_an_export_to_onnx():
    class Turned(nn.Module):
        def forward(self, image: Tensor) -> Tensor:
            return wk.warp_affine(image, MATRIX[0], backend="cpu")

    pytest.importorskip("onnxscript")
    with pytest.raises(Exception, match="has no ONNX operator"):
        torch.onnx.export(Turned(), (noise(3, 5, 6).float(),), dynamo=True, verbose=False)


def transformer(transform: str, **options) -> SpatialTransformer:
    """A transformer for images (B, 1, 4, 6) that is not at the identity."""
    localization = nn.Sequential(nn.Flatten(), nn.Linear(24, 4))
    module = SpatialTransformer(localization, (4, 5), transform=transform, features=4, **options)
    nn.init.normal_(module.head.weight, std=0.1)
    return module


BATCH = ({0: torch.export.Dim("batch")},)


def assert_onnxruntime_agrees(
    module: nn.Module,
    *arguments: Tensor,
    dynamic: tuple | None = None,
    others: tuple = (),
    by: str = "GridSample",
) -> None:
    """On the export's arguments, and on `others` of other sizes."""
    runtime = pytest.importorskip("onnxruntime")
    options = {"dynamo": True, "opset_version": 20, "dynamic_shapes": dynamic}
    with any_size():  # torch 2.7 exports GridSample alone
        program = torch.onnx.export(module, arguments, verbose=False, **options)
    model = program.model_proto
    assert model.opset_import[0].version >= 20
    assert {node.domain for node in model.graph.node} <= {""}
    assert not by or by in {node.op_type for node in model.graph.node}
    file = io.BytesIO()
    program.save(file)
    session = runtime.InferenceSession(file.getvalue())
    for given in (arguments, *others):
        feed = {i.name: a.numpy() for i, a in zip(session.get_inputs(), given, strict=True)}
        for got, expected in zip(session.run(None, feed), module(*given), strict=True):
            np.testing.assert_allclose(
                got, expected.detach(), rtol=0, atol=TOLERANCE["compiled float32"]
            )


class Transformers(nn.ModuleList):
    """One transformer of each kind, on the same images."""

    def __init__(self, backends: dict[str, str]) -> None:
        super().__init__(transformer(name, backend=backend) for name, backend in backends.items())

    def forward(self, images: Tensor) -> list[Tensor]:
        return [module(images) for module in self]


def test_onnxruntime_runs_a_spatial_transformer_on_any_batch():
    """An affine transformer's numbers take the same path as a perspective's, which has two more.

    Both are in one graph, so that the fixed cost of an export, 4 s, is paid once.
    """
    module = Transformers({"similarity": "grid_sample", "perspective": "auto"}).eval()
    images, one, seven = (noise(n, 1, 4, 6, seed=n).float() for n in (3, 1, 7))
    assert_onnxruntime_agrees(module, images, dynamic=BATCH, others=((one,), (seven,)))


def test_onnxruntime_runs_a_thin_plate():
    """ONNX has no solver, so its system is solved by reflections.

    Four points give 7 unknowns, each the same step; a test below solves larger systems.
    """

    class Plate(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.plate = transformer("thin_plate", lattice=(2, 2))

        def forward(self, images: Tensor) -> list[Tensor]:
            return [self.plate(images)]

    assert_onnxruntime_agrees(Plate().eval(), noise(2, 1, 4, 6).float(), by="")


@pytest.mark.parametrize("count", [1, 2, 5, 19])
def test_reflections_solve_systems_as_numpy_does(count):
    matrix, right = noise(4, count, count, seed=1) - 0.5, noise(4, count, 2, seed=2)
    matrix[0] = matrix[0] - matrix[0].diag().diag()  # zeros by which elimination would divide
    matrix[0] += torch.eye(count, dtype=matrix.dtype).flip(0)
    expected = np.linalg.solve(matrix.numpy(), right.numpy())
    found = solve_by_reflections(matrix, right)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("strict", [True, False])
def test_a_spatial_transformer_exports_for_any_batch(strict):
    module = Transformers({"similarity": "auto", "perspective": "auto"})
    images = noise(3, 1, 4, 6).float()
    program = torch.export.export(module, (images,), dynamic_shapes=BATCH, strict=strict)
    for count in (1, 7):
        other = noise(count, 1, 4, 6, seed=count).float()
        for got, expected in zip(program.module()(other), module(other), strict=True):
            torch.testing.assert_close(got, expected, rtol=0, atol=0)


def test_a_spatial_transformer_trains_as_one_graph():
    """torch allows eight graphs of one function, which a change in each call would exceed."""
    eager = transformer("affine")
    compiled = copy.deepcopy(eager)
    steps = torch.compile(compiled, fullgraph=True, backend="aot_eager")
    for step in range(14):
        images = noise(2, 1, 4, 6, seed=step).float()
        with torch._dynamo.config.patch(error_on_recompile=step > 0):
            losses = [run(images).square().mean() for run in (steps, eager)]
        for module, loss in zip((compiled, eager), losses, strict=True):
            module.zero_grad()
            loss.backward()
            torch.optim.SGD(module.parameters(), lr=0.1).step()
        torch.testing.assert_close(*losses, rtol=0, atol=TOLERANCE["compiled float32"])


@pytest.mark.parametrize("arithmetic", ["exact", "opencv4", "opencv5"])
@pytest.mark.parametrize("mode", ["real", "symbolic"])
def test_a_graph_holds_no_value_of_its_example_inputs(arithmetic, mode):
    def warp(image: Tensor, matrix: Tensor) -> Tensor:
        return wk.warp_affine(image, matrix, arithmetic=arithmetic)

    image = noise(2, 3, 7, 5, dtype=torch.float32)
    graph = make_fx(warp, tracing_mode=mode)(image, MATRIX[0])
    torch.testing.assert_close(
        graph(image, MATRIX[1]), warp(image, MATRIX[1]), rtol=0, atol=TOLERANCE["compiled float32"]
    )


@pytest.mark.parametrize("arithmetic", ["exact", "opencv4", "opencv5"])
def test_warps_of_fake_tensors_give_shapes(arithmetic):
    with FakeTensorMode():
        result = wk.warp_affine(torch.zeros(2, 3, 7, 5), torch.eye(2, 3), arithmetic=arithmetic)
    assert result.shape == (2, 3, 7, 5)
