"""The command line. An error that a user can cause is one line on stderr, exit status 1 or 2."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import torch
import typer
from torch import Tensor

import warpkit as wk
from warpkit._checks import SIDE
from warpkit.cli_options import (
    Angle,
    Arithmetic,
    Border,
    BorderValue,
    Center,
    Interpolation,
    Matrix,
    Numbers,
    Out,
    ParityArithmetic,
    Scale,
    Shear,
    Size,
    Source,
    Translate,
    gather,
)
from warpkit.image_files import ImageFileError, check_target, format_of, read_image, write_image

app = typer.Typer(
    name="warpkit",
    help="cv2.warpAffine for tensors, with gradients: the command line.",
    epilog="warpkit COMMAND --help explains a command.",
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class CommandError(Exception):
    """Options that do not go together, or values that a command cannot use."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    words = gather(sys.argv[1:] if argv is None else argv) or ["--help"]
    try:
        status = app(words, prog_name="warpkit", standalone_mode=False) or 0
        sys.stdout.flush()
        return status
    except (typer.Abort, KeyboardInterrupt):
        return fail("interrupted", 130)
    except typer.TyperException as error:
        return fail(error.format_message(), error.exit_code)
    except CommandError as error:
        return fail(str(error), 2)
    except ImageFileError as error:
        return fail(str(error), 1)
    except OSError as error:  # files are ImageFileErrors: it is stdout, full or closed
        with suppress(OSError, ValueError):  # Python would try again to write, and say so, at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return fail(f"standard output: {error.strerror}", 1)
    except (MemoryError, OverflowError, RuntimeError) as error:
        known = ("allocate memory", "overflow", "Unable to cast")  # a size beyond int64
        if isinstance(error, RuntimeError) and not any(text in str(error) for text in known):
            raise
        return fail("not enough memory for images of this size", 1)


def fail(message: str, status: int) -> int:
    """Say in one line on stderr what was wrong."""
    print("warpkit:", " ".join(message.split()), file=sys.stderr)
    return status


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        print("warpkit", wk.__version__)
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options that stand before the command."""


@app.command(short_help="Warp an image file.")
def warp(
    source: Source,
    out: Out,
    angle: Angle = None,
    scale: Scale = None,
    shear: Shear = None,
    translate: Translate = None,
    center: Center = None,
    matrix: Matrix = None,
    size: Size = None,
    interpolation: Interpolation = "bilinear",
    border: Border = "constant",
    border_value: BorderValue = None,
    arithmetic: Arithmetic = "exact",
) -> None:
    """Warp an image file by an angle, scale, shear and translation, or by a matrix.

    Sizes are height and width; pixels are (x, y), and the centre of the top-left pixel is (0, 0).
    The result keeps the image's kind (grey, colour, alpha, palette, 16-bit grey).
    """
    format_of(out)  # refused before any work
    check_target(out)
    picture = read_image(source)
    channels, height, width = picture.pixels.shape
    names = ("angle", "scale", "shear", "translate", "center")
    values = (angle, scale, shear, translate, center)
    parts = {name: value for name, value in zip(names, values, strict=True) if value is not None}
    to_out = matrix_of(matrix, parts, wk.image_center((height, width)))
    value = border_value or Numbers((0.0,))
    if len(value) not in (1, channels):
        raise CommandError(
            f"--border-value takes 1 or {channels} numbers for this image, got {len(value)}"
        )
    if size and max(size) >= SIDE:
        raise CommandError("--size takes numbers below 2^31")
    warp_by = wk.warp_affine if to_out.shape == (2, 3) else wk.warp_perspective
    pixels = warp_by(
        picture.pixels,
        to_out,
        size=(int(size[0]), int(size[1])) if size else None,
        interpolation=interpolation,
        border=border,
        border_value=torch.tensor(value, dtype=torch.float64),
        arithmetic=arithmetic,
    )
    write_image(out, replace(picture, pixels=pixels))


@app.command()
def demo(
    image: Annotated[
        Path | None,
        typer.Argument(metavar="IMAGE", help="A photograph of your own. [default: warpkit's]"),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="PNG", help="The figure to write.")] = Path(
        "demo.png"
    ),
) -> None:
    """Warp a photograph, compare with OpenCV, and find a hidden warp by its gradients.

    Writes one figure, and takes a few seconds.
    """
    from warpkit.demo_run import run

    run(image, out)


@app.command(short_help="Compare with the installed OpenCV, pixel by pixel.")
def parity(
    images: Annotated[
        list[Path], typer.Argument(metavar="IMAGE", help="Photographs, grey or RGB.")
    ],
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report as one page.")
    ] = None,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write every figure.")] = None,
    arithmetic: ParityArithmetic = "auto",
) -> int:
    """Warp photographs and noise by warpkit and by the installed OpenCV, and count what differs.

    Every map, interpolation, border, type and number of channels, which takes about a minute.
    Exit status 1 where a pixel differs that is promised to be OpenCV's.
    """
    from warpkit.parity_run import run

    try:
        return run(images, html, json, arithmetic)
    except ImportError as error:
        return fail(str(error), 1)


@app.command(short_help="Fool a small net about a photograph.")
def attack(
    image: Annotated[
        Path | None,
        typer.Argument(metavar="IMAGE", help="A photograph of your own. [default: warpkit's]"),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="PNG", help="The figure to write.")] = Path(
        "attack.png"
    ),
    epsilon: Annotated[
        int, typer.Option(min=1, max=255, metavar="N", help="Levels of 255 a value may change.")
    ] = 16,
    steps: Annotated[int, typer.Option(min=1, metavar="N", help="Steps of the descent.")] = 40,
) -> None:
    """Perturb a photograph so that a small net is misled about it, however it is turned.

    The net learns to tell the photograph's quarters apart under turns, scales and shifts; the
    perturbation makes it name the next quarter. It is found twice, as the photograph stands and as
    a mean over transformations, and judged under transformations not seen before. Writes one
    figure.
    """
    from warpkit.attack_run import run

    run(image, out, epsilon, steps)


@app.command(short_help="Time warps on this machine beside grid_sample, kornia and OpenCV.")
def bench(
    quick: Annotated[bool, typer.Option("--quick", help="5 turns each, not 21.")] = False,
    only: Annotated[
        str, typer.Option(metavar="TEXT", help="Only workloads whose name contains this.")
    ] = "",
    threads: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="[default: torch's]")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="CSV", help="Write the rows.")] = None,
    warm: Annotated[
        bool, typer.Option("--warm", help="Compile the usual kernels instead, once and for all.")
    ] = False,
) -> None:
    """Time warps on the CPU, forward and with gradients, in turns with those of other libraries.

    Every workload first proves that all compute the same numbers. The ratios are medians over the
    turns of (other / warpkit): above 1, warpkit is faster. kornia and OpenCV take part where they
    are installed.
    """
    from warpkit.bench_run import compile_all, run

    if warm:
        return compile_all()
    try:
        return run(quick, only, threads or torch.get_num_threads(), out)
    except ValueError as error:
        raise CommandError(str(error)) from None


def matrix_of(
    matrix: Numbers | None, parts: dict[str, Numbers], middle: tuple[float, float]
) -> Tensor:
    """The matrix that the options stand for, float64: (2, 3), or (3, 3) where given so."""
    if matrix is None:
        return affine_of(parts, middle)
    if parts:
        raise CommandError(f"--matrix takes the place of --{next(iter(parts))}: give one of them")
    result = torch.tensor(matrix, dtype=torch.float64).reshape(-1, 3)
    try:
        wk.invert(result)
    except ValueError:
        raise CommandError("--matrix must be invertible") from None
    return result


def affine_of(parts: dict[str, Numbers], middle: tuple[float, float]) -> Tensor:
    """The affine matrix (2, 3) of the options that were given, about `middle` unless told."""
    angle, scale, shear, translation, center = (
        torch.tensor(parts.get(name, default), dtype=torch.float64)
        for name, default in (
            ("angle", (0.0,)),
            ("scale", (1.0,)),
            ("shear", (0.0,)),
            ("translate", (0.0, 0.0)),
            ("center", middle),
        )
    )
    shear = torch.nn.functional.pad(shear, (0, 2 - len(shear)))
    return wk.affine_matrix(
        angle=angle[0], scale=scale[0], shear=shear, translation=translation, center=center
    )
