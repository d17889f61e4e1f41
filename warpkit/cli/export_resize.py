"""`warpkit export-resize`: writes a resize of bytes as an ONNX model, with a library's pixels."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated

import typer

from warpkit.choices import (
    OPENCV_FILTERS,
    PILLOW_FILTERS,
    RESIZE_ARITHMETICS,
    TORCH_FILTERS,
    Filter,
    ResizeArithmetic,
)
from warpkit.cli.errors import CommandError
from warpkit.cli.image_files import check_target, replacing
from warpkit.cli.options import Means, NewSize, Numbers, numbers, one_of, option, whole
from warpkit.cli.sizes import check_size

LIBRARIES = tuple(name for name in RESIZE_ARITHMETICS if name != "exact")

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
        help="The images' height and width. [default: any size, which only Pillow's bilinear, "
        "bicubic and lanczos can take]",
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
    from warpkit.cli.resize_models import check_filter, model_of

    if size is None:
        raise CommandError("takes --size H W: the model's result has one size")
    check_size("--size", *size)
    if source is not None:
        check_size("--from", *source)
    check_filter(interpolation, antialias, arithmetic, any_source=source is None)
    check_target(out)
    missing = [name for name in ("onnx", "onnxscript") if importlib.util.find_spec(name) is None]
    if missing:
        raise CommandError(f"needs {' and '.join(missing)}: pip install {' '.join(missing)}")
    model = model_of(size, source, interpolation, antialias, arithmetic, channels)
    with replacing(out) as file:
        file.write(model)
