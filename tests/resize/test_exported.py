"""8-bit resizes exported to ONNX: Pillow's, torch's and OpenCV's pixels in onnxruntime.

Of one height and width: tests/cli/test_export_resize exports Pillow's for any.
"""

from __future__ import annotations

import csv
from itertools import product

import cv2
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn

import warpkit as wk
from tests.support import ROOT
from warpkit.engine import onnx as exported
from warpkit.engine.arithmetic.resize import RESIZE_ARITHMETICS, ZOOMS, filters_of, parse_rule
from warpkit.engine.onnx.blocks import EXACT, blocks_of

SIZES = (
    *(((31, 45), (12, 20)), ((31, 45), (60, 91)), ((31, 45), (31, 9)), ((31, 45), (7, 45))),
    *(((4, 5), (130, 3)), ((2000, 3), (2, 20)), ((1, 9), (4, 1)), ((40, 60), (20, 30))),
    *(((40, 60), (10, 15)), ((9, 9), (1, 1)), ((41, 61), (40, 60)), ((2, 2), (9, 17))),
)
PILLOW = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")
OPENCV = {
    "nearest": cv2.INTER_NEAREST,
    "nearest_exact": cv2.INTER_NEAREST_EXACT,
    "bilinear": cv2.INTER_LINEAR,
    "bilinear_exact": cv2.INTER_LINEAR_EXACT,
    "bicubic": cv2.INTER_CUBIC,
    "area": cv2.INTER_AREA,
    "lanczos4": cv2.INTER_LANCZOS4,
}
TORCH = {
    "nearest": (None,),
    "nearest_exact": (None,),
    "bilinear": (True, False),
    "bicubic": (True, False),
    "lanczos": (True,),
    "area": (None,),
}


def bytes_of(*shape: int, ends: bool = False) -> Tensor:
    torch.manual_seed(sum(shape))
    image = torch.randint(0, 256, shape, dtype=torch.uint8)
    return (image > 127).to(torch.uint8) * 255 if ends else image


def traced(image: Tensor, size: tuple[int, int], name: str, arithmetic: str, antialias=None):
    """The exported graph's result, computed by torch's operations."""
    return exported.resize(image, size, parse_rule("resize", name, antialias, arithmetic))


@pytest.fixture
def without_ipp():
    before = cv2.ipp.useIPP()
    cv2.ipp.setUseIPP(False)
    yield
    cv2.ipp.setUseIPP(before)


@pytest.mark.parametrize("name", PILLOW)
def test_pillows_graph_has_pillows_pixels(name):
    filter_number = Image.Resampling[name.upper()]
    for source, size in SIZES:
        image = bytes_of(2, 3, *source, ends=source[0] % 2 == 0)
        got = traced(image, size, name, "pillow")
        for picture, plane in zip(image.flatten(0, 1).numpy(), got.flatten(0, 1), strict=True):
            wanted = Image.fromarray(picture).resize(size[::-1], filter_number)
            assert np.array_equal(np.asarray(wanted), plane.numpy()), (source, size)


@pytest.mark.usefixtures("without_ipp")
@pytest.mark.parametrize("name", OPENCV)
def test_opencvs_graph_has_opencvs_pixels(name):
    arithmetic = f"opencv{cv2.__version__[0]}"
    for source, size in SIZES:
        for channels in (1, 2, 3, 4):
            image = bytes_of(1, channels, *source, ends=source[0] % 2 == 0)
            got = traced(image, size, name, arithmetic)[0].permute(1, 2, 0).numpy()
            array = image[0].permute(1, 2, 0).numpy()
            wanted = cv2.resize(array, size[::-1], interpolation=OPENCV[name])
            assert np.array_equal(got, wanted.reshape(got.shape)), (source, size, channels)


@pytest.mark.parametrize("name", TORCH)
def test_torchs_graph_has_the_references_pixels(name):
    """test_torchvision compares the reference with F.interpolate."""
    for antialias in TORCH[name]:
        for source, size in SIZES:
            image = bytes_of(2, 3, *source, ends=source[0] % 2 == 0)
            got = traced(image, size, name, "torchvision", antialias)
            options = {"interpolation": name, "antialias": antialias, "backend": "reference"}
            wanted = wk.resize(image, size, arithmetic="torchvision", **options)
            assert torch.equal(got, wanted), (source, size, antialias)


@pytest.mark.parametrize("name", ["nearest", "nearest_exact"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_torchs_graph_of_floats_has_the_pixels_of_interpolate(name, dtype):
    """F.interpolate itself would become ONNX's Resize: 26 to 64 columns read 12 for 13 at 32."""
    for length, wanted in ((26, 64), *product((1, 2, 5, 23, 41, 97), (1, 3, 19, 26, 64, 130))):
        image = torch.arange(2.0 * 3 * length).reshape(2, 1, 3, length).to(dtype)
        got = traced(image, (5, wanted), name, "torchvision")
        true = F.interpolate(image.double(), (5, wanted), mode=name.replace("_", "-")).to(dtype)
        assert torch.equal(got, true), (length, wanted)


def test_blocks_hold_every_sum_in_float32():
    """Their digits together make the weights; windows of 2,000 taps need more digits."""
    random = np.random.default_rng(0)
    for length, taps in ((40, 6), (3000, 2000)):
        first = np.sort(random.integers(0, length - taps + 1, 5))
        weight = random.integers(0, 2, (5, taps)) * (1 << 22) // taps + random.integers(0, 9)
        weight[:, 0] *= -1
        blocks = blocks_of(first[:, None] + np.arange(taps), weight, length, bits=22)
        assert blocks is not None
        shown = random.integers(0, 256, length)
        for digit in blocks.digits[:-1]:
            assert 255 * (np.abs(digit) * 2.0**blocks.step).sum(-1).max() < EXACT
        total = np.zeros(blocks.digits[0].shape[:2])
        windows = shown[blocks.rows].reshape(len(total), -1)
        for k, digit in enumerate(blocks.digits):
            unit = 2.0 ** (blocks.step * (k if k == len(blocks.digits) - 1 else k + 1))
            total += np.einsum("bij,bj->bi", digit.astype(np.float64), windows) * unit
        unit = 2.0 ** (22 - blocks.bits - blocks.step * (len(blocks.digits) - 1))
        wanted = (shown[first[:, None] + np.arange(taps)] * weight).sum(1)
        assert np.array_equal(total.ravel()[:5] * unit, wanted)
    assert blocks_of(np.zeros((1, 1), np.int64), np.array([[1 << 60]]), 1, bits=22) is None


class Resizes(nn.Module):
    """Several resizes in one model, since starting an export takes most of its time."""

    def __init__(self, *calls: dict) -> None:
        super().__init__()
        self.calls = calls

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        return tuple(wk.resize(image, **call) for call in self.calls)


def run_in_onnxruntime(module: nn.Module, image: Tensor, *others: Tensor, sides: bool = False):
    """Check that every result has the module's bits, and return the model."""
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    axes = ("batch", None, "height", "width") if sides else ("batch",)
    dynamic = ({k: torch.export.Dim(name) for k, name in enumerate(axes) if name},)
    options = {"dynamo": True, "opset_version": 20, "dynamic_shapes": dynamic, "verbose": False}
    program = torch.onnx.export(module.eval(), (image,), **options)
    assert program is not None
    model = program.model_proto
    assert model.opset_import[0].version == 20
    assert {node.domain for node in model.graph.node} <= {""}
    assert not model.functions
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    for given in (image, *others):
        made = session.run(None, {"image": given.numpy()})
        for k, (got, wanted) in enumerate(zip(made, module(given), strict=True)):
            assert got.dtype == np.uint8
            assert np.array_equal(got, wanted.numpy()), (k, given.shape)
    return model


MOST_NODES = {"bicubic": 49, "lanczos4": 66}
"""Of OpenCV's, whose sums are floats, tap by tap; of all others 30."""
NAMES = {
    "pillow": ("nearest", "lanczos"),
    "torchvision": ("bilinear", "area"),
    "opencv4": ("bilinear", "area"),
    "opencv5": ("bilinear", "bilinear_exact", "bicubic", "area"),
    "opencv4_ipp": ("bilinear",),
    "opencv5_ipp": ("bilinear",),
}
"""Of every arithmetic: all ways through its code; tests that need no runtime take all names."""


def test_small_float32_graphs_give_the_same_integers_in_onnxruntime():
    pairs = [(arithmetic, name) for arithmetic, of in NAMES.items() for name in of]
    calls = [{"arithmetic": arithmetic, "interpolation": name} for arithmetic, name in pairs]
    assert {arithmetic for arithmetic, _ in pairs} == {*RESIZE_ARITHMETICS} - {"exact", *ZOOMS}
    module = Resizes(*(call | {"size": (12, 41)} for call in calls))
    few, many = bytes_of(1, 3, 40, 31), bytes_of(7, 3, 40, 31, ends=True)
    model = run_in_onnxruntime(module, bytes_of(2, 3, 40, 31), few, many)
    assert len(model.graph.node) <= sum(MOST_NODES.get(name, 30) for _, name in pairs)
    kinds = {value.type.tensor_type.elem_type for value in model.graph.value_info}
    onnx = pytest.importorskip("onnx")
    assert onnx.TensorProto.DOUBLE not in kinds
    assert not {"Loop", "Scan", "If"} & {node.op_type for node in model.graph.node}


def test_every_recorded_resize_of_bytes_is_a_small_float32_graph():
    """As recorded by scripts/record exports, for each resize by itself."""
    with (ROOT / "data" / "exports.csv").open(newline="") as file:
        file.readline()
        rows = [row for row in csv.DictReader(file) if row["function"] == "resize"]
    counted = set()
    for row in rows:
        kind, arithmetic, name = row["call"].split(", ")
        if kind == "uint8" and arithmetic in NAMES and row["dynamic"] == "batch":
            if arithmetic.endswith("_ipp") and name == "bicubic":
                continue  # fused multiply-adds of floats
            counted.add((arithmetic, name))
            most = MOST_NODES.get(name, 30) if arithmetic.startswith("opencv") else 30
            assert int(row["nodes"]) <= most, row
            assert row["largest"] == "0", row
            assert not row["float64"], row
    for arithmetic in ("pillow", "torchvision", "opencv5"):
        assert {name for kind, name in counted if kind == arithmetic} == {*filters_of(arithmetic)}


def test_other_resizes_say_that_they_need_a_fixed_size():
    module = Resizes({"arithmetic": "opencv5", "interpolation": "area", "size": (4, 5)})
    with pytest.raises(Exception, match="of one height and width in an export, but for pillow's"):
        run_in_onnxruntime(module, bytes_of(2, 3, 48, 63), sides=True)
