"""The models that `warpkit export-resize` writes."""

from __future__ import annotations

import logging
import warnings
from functools import partial

import torch
from torch import Tensor, nn

import warpkit as wk
from warpkit.cli.errors import CommandError
from warpkit.cli.options import Numbers
from warpkit.engine.arithmetic.resize import parse_rule
from warpkit.engine.onnx import SIZED, any_size
from warpkit.types import Filter, ResizeArithmetic

OPSET = 20


def check_filter(
    interpolation: Filter, antialias: bool | None, arithmetic: ResizeArithmetic, any_source: bool
) -> None:
    """Reject filters that the arithmetic or ONNX lacks."""
    try:
        parse_rule("resize", interpolation, antialias, arithmetic)
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


def model_of(
    size: Numbers,
    source: Numbers | None,
    interpolation: Filter,
    antialias: bool | None,
    arithmetic: ResizeArithmetic,
    channels: int,
) -> bytes:
    """The model's file, for any batch size, and without a source for any height and width."""
    resize = partial(
        wk.resize,
        size=(int(size[0]), int(size[1])),
        interpolation=interpolation,
        antialias=antialias,
        arithmetic=arithmetic,
    )
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
                Resize(resize).eval(),
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
