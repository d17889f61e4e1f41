"""`warpkit export-resize`: writes a resize of bytes as an ONNX model, with a library's pixels."""

from __future__ import annotations

import importlib.util
import logging
import warnings
from functools import partial
from pathlib import Path
from typing import Annotated

import torch
import typer
from torch import Tensor, nn

import warpkit as wk
from warpkit.cli.errors import CommandError
from warpkit.cli.image_files import check_target, replacing
from warpkit.cli.options import Means, NewSize, Numbers, numbers, one_of, option, whole
from warpkit.cli.sizes import check_size
from warpkit.engine.arithmetic.resize import (
    OPENCV_FILTERS,
    PILLOW_FILTERS,
    RESIZE_ARITHMETICS,
    TORCH_FILTERS,
    named_rule,
)
from warpkit.engine.backends.exported import SIZED, any_size
from warpkit.types import Filter, ResizeArithmetic

LIBRARIES = tuple(name for name in RESIZE_ARITHMETICS if name != "exact")
OPSET = 20

Target = Annotated[
    Path, typer.Argument(metavar="OUT", help="The model to write.", show_default=False)
]
Library = Annotated[
    ResizeArithmetic, option(one_of(LIBRARIES), "NAME", "Whose pixels: " + ", ".join(LIBRARIES))
]
NAMES = {"pillow": PILLOW_FILTERS, "torchvision": TORCH_FILTERS, "OpenCV's": OPENCV_FILTERS}
Interpolation = Annotated[
    Filter,
    option(
        str,  # the valid names depend on the arithmetic
        "NAME",
        "; ".join(f"{whose}: {', '.join(names)}" for whose, names in NAMES.items()) + ".",
    ),
]
Source = Annotated[
    Numbers | None,
    typer.Option(
        "--from",
        parser=numbers(2, positive=True, whole=True),
        metavar="H W",
        help="The images' height and width. [default: any; only for Pillow's bilinear, bicubic and "
        "lanczos]",
    ),
]
Channels = Annotated[int, option(whole(), "N", "The images' channels.")]


def export_resize(
    out: Target,
    size: NewSize = None,
    source: Source = None,
    interpolation: Interpolation = "bilinear",
    antialias: Means = None,
    arithmetic: Library = "pillow",
    channels: Channels = 3,
) -> None:
    """Write a resize as an ONNX model: warpkit export-resize OUT.onnx --size H W --from H W

    It takes `image`, uint8 (N, C, H, W) with any N, and returns `resized`, uint8 of the new size,
    with the integers of Pillow, torch or OpenCV in onnxruntime on the CPU.
    """
    if size is None:
        raise CommandError("takes --size H W: the model's result has one size")
    check_size("--size", *size)
    if source is not None:
        check_size("--from", *source)
    _check_filter(interpolation, antialias, arithmetic, any_source=source is None)
    check_target(out)
    missing = [name for name in ("onnx", "onnxscript") if importlib.util.find_spec(name) is None]
    if missing:
        raise CommandError(f"needs {' and '.join(missing)}: pip install {' '.join(missing)}")
    resize = partial(
        wk.resize,
        size=(int(size[0]), int(size[1])),
        interpolation=interpolation,
        antialias=antialias,
        arithmetic=arithmetic,
    )
    written = _model(Resize(resize), source, channels)
    with replacing(out) as file:
        file.write(written)


def _check_filter(
    interpolation: Filter, antialias: bool | None, arithmetic: ResizeArithmetic, any_source: bool
) -> None:
    """Reject filters that the arithmetic or ONNX lacks."""
    try:
        named_rule("resize", interpolation, antialias, arithmetic)
    except ValueError as error:
        raise CommandError(str(error).replace("`", "--", 1).replace("`", "", 1)) from None
    if any_source and not (arithmetic == "pillow" and interpolation in any_size.FILTERS):
        raise CommandError(f"takes --from H W, the images' size: only {SIZED} takes any")


class Resize(nn.Module):
    """One resize."""

    def __init__(self, resize: partial[Tensor]) -> None:
        super().__init__()
        self.resize = resize

    def forward(self, image: Tensor) -> Tensor:
        """Resizes (N, C, H, W)."""
        return self.resize(image)


def _model(module: Resize, source: Numbers | None, channels: int) -> bytes:
    """The model's file, for any batch size, and without a source for any height and width."""
    # torch would take sides of 1, and equal sides, for constants
    height, width = (48, 63) if source is None else map(int, source)
    names = {0: "batch"} if source is not None else {0: "batch", 2: "height", 3: "width"}
    image = torch.zeros(2, channels, height, width, dtype=torch.uint8)
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                module.eval(),
                (image,),
                dynamo=True,
                opset_version=OPSET,
                input_names=["image"],
                output_names=["resized"],
                dynamic_shapes=({axis: torch.export.Dim(name) for axis, name in names.items()},),
                verbose=False,
            )
    finally:
        logging.disable(before)
    assert program is not None
    return program.model_proto.SerializeToString()
