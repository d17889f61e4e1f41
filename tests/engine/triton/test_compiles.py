"""Every CUDA kernel compiles, without a device.

The interpreter runs kernels as Python: it accepts variables that change their type in a loop, and
variables in the place of constants; the compiler does not.
"""

from __future__ import annotations

import pytest

pytest.importorskip("triton")

import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile

from warpkit.engine import triton as cuda
from warpkit.engine.definitions.rules import TAPS
from warpkit.engine.triton.backward import backward_kernel
from warpkit.engine.triton.correlation_kernels import (
    correlation_gather_kernel,
    correlation_gradient_kernel,
    correlation_kernel,
    correlation_scatter_kernel,
)
from warpkit.engine.triton.depth import NUMBERS
from warpkit.engine.triton.depth_points import points_backward_kernel, points_kernel
from warpkit.engine.triton.fixed_point import largest_kernel
from warpkit.engine.triton.forward import forward_kernel
from warpkit.engine.triton.front import front_kernel, moved_kernel
from warpkit.engine.triton.gather import gather_kernel
from warpkit.engine.triton.gather_affine import gather_affine_kernel
from warpkit.engine.triton.inverse import invert_kernel
from warpkit.engine.triton.jpeg_blocks import blocks_kernel
from warpkit.engine.triton.jpeg_pixels import colours_kernel, gathered_kernel, shown_kernel
from warpkit.engine.triton.scatter import collect_kernel, scatter_kernel
from warpkit.engine.triton.sweep_kernels import sweep_backward_kernel, sweep_kernel

DOUBLES = ("mapping", "grad_mapping", "scale", "matrix", "to_source")
POINTERS = ("image", "grad", "fill", "grad_fill", "out", "grad_image", "units", "rests")
POINTERS += DOUBLES
SWITCHES = {
    "KIND": 2, "TAPS": 2, "BORDER_Y": 0, "BORDER_X": 0, "DENSE": False,
    "REAL": tl.float32, "OFFSET": tl.int32,
    "LOW": 0, "HIGH": 0, "MOVED": False, "VALUE": None, "PIXELS": 512, "SPAN": 8, "UNROLL": 2,
    "CHANNEL_BLOCK": 1, "LAST": False, "BLOCK": 128, "NEEDS_GRAD_MAPPING": True,
    "NEEDS_GRAD_FILL": True,
}  # fmt: skip


def type_of(name: str, image: str) -> str:
    """The type of a kernel's argument in Triton's notation."""
    if name in ("units", "rests"):
        return "*i64"
    if name in DOUBLES:
        return "*fp64"
    if name == "rest_scale":
        return "fp32"
    return f"*{image}" if name in POINTERS else "i32"


def compiled(kernel, switches, types):
    """The assembly of a kernel for sm_90; types: of its arguments, in Triton's notation."""
    names = kernel.arg_names
    constants = {(names.index(name),): switches[name] for name in switches if name in names}
    signature = {n: "constexpr" if n in switches else types(n) for n in names}
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    options = {"enable_fp_fusion": False}
    return compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["ptx"]


FILES = {"CHANNELS": 3, "ROWS": 2, "COLUMNS": 2, "BLOCKS": 4, "PIXELS": 512}


CORRELATIONS = (correlation_kernel, correlation_gradient_kernel, correlation_scatter_kernel)
SQUARE = {"PIXELS": 128, "CHANNELS": 16, "NEEDS_FIRST": True, "NEEDS_FLOW": False}


@pytest.mark.skipif(cuda.INTERPRETED, reason="the kernels are interpreted in this process")
@pytest.mark.parametrize(
    ("kernel", "border", "flows"),
    [
        *((kernel, 0, "fp32") for kernel in CORRELATIONS),
        *((kernel, 1, "fp64") for kernel in CORRELATIONS),
        *((kernel, 2, None) for kernel in CORRELATIONS),
        (correlation_gather_kernel, 0, None),
        (largest_kernel, 0, None),
    ],
)
def test_a_correlation_compiles_without_a_device(kernel, border, flows):
    switches = {"BORDER_Y": border, "BORDER_X": border, "BLENDS": flows is not None, **SQUARE}
    switches |= {"NEEDS_FLOW": flows is not None, "BLOCK": 1024}
    arrays = {"flows": flows or "fp32", "scale": "fp64", "units": "i64", "spoiled": "i8"}
    names = ("firsts", "seconds", "out", "grads", "to_firsts", "to_seconds", "to_flows", "values")
    arrays |= dict.fromkeys(names, "fp32")
    text = compiled(kernel, switches, lambda n: f"*{arrays[n]}" if n in arrays else "i32")
    assert ".target sm_90" in text


@pytest.mark.skipif(cuda.INTERPRETED, reason="the kernels are interpreted in this process")
@pytest.mark.parametrize(
    ("kernel", "image", "changes"),
    [
        (blocks_kernel, "u8", {"PLANES": 1, "BACKWARD": False}),
        (blocks_kernel, "u8", {"PLANES": 1, "BACKWARD": False, "CHANNELS": 1}),
        (blocks_kernel, "fp64", {"PLANES": 2, "BACKWARD": False}),
        (blocks_kernel, "fp32", {"PLANES": 1, "BACKWARD": True}),
        (blocks_kernel, "fp32", {"PLANES": 2, "BACKWARD": True, "ROWS": 1}),
        (blocks_kernel, "fp32", {"PLANES": 2, "BACKWARD": True, "ROWS": 1, "COLUMNS": 1}),
        (shown_kernel, "u8", {"BACKWARD": False}),
        (shown_kernel, "fp64", {"BACKWARD": False, "ROWS": 1}),
        (shown_kernel, "fp32", {"BACKWARD": True}),
        (shown_kernel, "fp32", {"BACKWARD": True, "CHANNELS": 1, "ROWS": 1, "COLUMNS": 1}),
        (gathered_kernel, "fp32", {}),
        (gathered_kernel, "fp32", {"ROWS": 1, "COLUMNS": 1}),
        (colours_kernel, "fp32", {}),
        (colours_kernel, "fp32", {"CHANNELS": 1, "ROWS": 1, "COLUMNS": 1}),
    ],
)
def test_a_kernel_of_files_compiles_without_a_device(kernel, image, changes):
    switches = {**FILES, **changes}

    def type_of(name):
        if name in ("images", "out"):
            return f"*{image}"
        if name == "qualities":
            return "*i32"
        is_bytes = kernel is shown_kernel and name in ("brightness", "colours")
        if name == "planes" or is_bytes:
            return "*u8" if image != "fp32" or is_bytes else "*fp32"
        gradients = ("grad", "grads", "grad_brightness", "grad_colours", "brightness", "colours")
        return "*fp32" if name in gradients else "i32"

    assert ".target sm_90" in compiled(kernel, switches, type_of)


SCENE = {
    "KIND": 0, "PINHOLE": True, "COUNT": 0, "NUMBERS": NUMBERS, "HAS_OWN": False, "PIXELS": 128,
    "HAS_INSIDE": True, "FIRST": 0, "LAST": 1, "NEAREST": False, "BACKWARD": False,
}  # fmt: skip


@pytest.mark.skipif(cuda.INTERPRETED, reason="the kernels are interpreted in this process")
@pytest.mark.parametrize(
    ("kernel", "depths", "changes"),
    [
        *(
            (kernel, depths, {"KIND": kind, "COUNT": count, "HAS_OWN": True, "PINHOLE": pinhole})
            for kernel in (points_kernel, points_backward_kernel)
            for depths, kind, count, pinhole in (
                ("fp32", 0, 0, True),
                ("fp64", 1, -1, False),
                ("fp32", 2, 14, True),
                ("fp32", 1, 5, True),
            )
        ),
        (points_kernel, "fp32", {"NEAREST": True, "FIRST": 0, "LAST": 0}),
        (front_kernel, "fp32", {"FIRST": True}),
        (front_kernel, "fp64", {"FIRST": False}),
        (moved_kernel, "i16", {}),
        (moved_kernel, "i64", {"BACKWARD": True}),
    ],
)
def test_a_kernel_of_depths_compiles_without_a_device(kernel, depths, changes):
    arrays = {"depths": depths, "to_depths": depths, "flows": depths, "images": depths}
    arrays |= {"out": depths, "found": "i32", "nearest": "i64", "insides": "i1", "filled": "i1"}
    wide = ("rays", "rows", "points", "owns", "grad_points", "grad_owns", "to_rays", "sums")
    arrays |= dict.fromkeys(wide, "fp64")

    def type_of(name):
        return f"*{arrays[name]}" if name in arrays else "i32"

    assert ".target sm_90" in compiled(kernel, {**SCENE, **changes}, type_of)


SWEEPS = {
    **SCENE, "FLAT": False, "INSIDE": True, "BORDER_Y": 0, "BORDER_X": 0, "MEASURE": 4,
    "HAS_VIEW": True, "NEEDS_VIEW": True, "NEEDS_SOURCES": True, "NEEDS_PLACES": True,
    "GROUPS": 4, "EACH": 1, "PLANES": 8,
}  # fmt: skip


@pytest.mark.skipif(cuda.INTERPRETED, reason="the kernels are interpreted in this process")
@pytest.mark.parametrize("kernel", [sweep_kernel, sweep_backward_kernel])
@pytest.mark.parametrize(
    ("depths", "changes"),
    [
        ("fp32", {}),
        ("fp64", {"FLAT": True, "MEASURE": 0, "EACH": 2, "INSIDE": False, "NEEDS_PLACES": False}),
        ("fp64", {"HAS_VIEW": False, "KIND": 1, "COUNT": 5, "NEEDS_VIEW": False}),
        ("fp32", {"KIND": 2, "COUNT": 14, "PINHOLE": False, "MEASURE": 2, "NEEDS_SOURCES": False}),
        ("fp32", {"COUNT": -1, "MEASURE": 3, "INSIDE": False, "BORDER_Y": 2, "BORDER_X": 4}),
    ],
)
def test_a_sweep_compiles_without_a_device(kernel, depths, changes):
    arrays = {"depths": depths, "rays": "fp64", "rows": "fp64", "seen": "i32", "scale": "fp64"}
    arrays |= {"units": "i64", "spoiled": "i8"}
    names = ("views", "sources", "out", "grads", "to_views", "to_places")
    arrays |= dict.fromkeys(names, "fp32")
    switches = {**SWEEPS, **changes}
    text = compiled(kernel, switches, lambda n: f"*{arrays[n]}" if n in arrays else "i32")
    assert ".target sm_90" in text


@pytest.mark.skipif(cuda.INTERPRETED, reason="the kernels are interpreted in this process")
@pytest.mark.parametrize(
    ("kernel", "image", "changes"),
    [
        (forward_kernel, "fp32", {}),
        (forward_kernel, "fp16", {"KIND": 3, "BORDER_Y": 2, "BORDER_X": 2, "SPAN": 16}),
        (forward_kernel, "u8", {"REAL": tl.float64, "HIGH": 255, "TAPS": 1, "BORDER_Y": 4}),
        (forward_kernel, "i8", {"REAL": tl.float64, "MOVED": True, "VALUE": tl.int8, "TAPS": 1}),
        (forward_kernel, "i64", {"REAL": tl.float64, "MOVED": True, "VALUE": tl.int64, "TAPS": 1}),
        (forward_kernel, "fp32", {"KIND": 0, "DENSE": True, "CHANNEL_BLOCK": 4, "PIXELS": 128}),
        (backward_kernel, "fp32", {}),
        (backward_kernel, "fp32", {"BORDER_Y": 4}),
        (backward_kernel, "fp32", {"KIND": 3, "TAPS": 4, "UNROLL": 4, "PIXELS": 256}),
        (backward_kernel, "fp64", {"KIND": 0, "REAL": tl.float64, "OFFSET": tl.int64}),
        (gather_affine_kernel, "fp32", {"CHANNEL_BLOCK": 4, "PIXELS": 128}),
        (gather_affine_kernel, "fp32", {"CHANNEL_BLOCK": 4, "PIXELS": 128, "TAPS": 8}),
        (gather_kernel, "fp32", {"CHANNEL_BLOCK": 4, "PIXELS": 128, "KIND": 3}),
        (gather_kernel, "fp32", {"CHANNEL_BLOCK": 4, "PIXELS": 128, "TAPS": 1}),
        (scatter_kernel, "fp32", {"KIND": 0}),
        (scatter_kernel, "fp64", {"BORDER_X": 1, "REAL": tl.float64}),
        (collect_kernel, "fp32", {}),
        (invert_kernel, "fp64", {}),
        (invert_kernel, "fp64", {"KIND": 3}),
    ],
)
def test_a_kernel_compiles_without_a_device(kernel, image, changes):
    switches = {**SWITCHES, **changes}
    switches["VALUE"] = switches["VALUE"] or switches["REAL"]
    switches["WAY"] = list(TAPS.values()).index(switches["TAPS"])
    assert ".target sm_90" in compiled(kernel, switches, lambda name: type_of(name, image))
