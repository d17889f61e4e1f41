"""The command-line app. A user's error is one line on stderr, with exit status 1 or 2."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import warpkit as wk
from warpkit.cli.errors import CommandError, cause_of
from warpkit.cli.export_resize import export_resize
from warpkit.cli.help import Command
from warpkit.cli.image_files import leave_stdout
from warpkit.cli.image_kinds import reason
from warpkit.cli.options import (
    Angle,
    Antialias,
    Arithmetic,
    BorderValue,
    Center,
    Corners,
    Files,
    Filter,
    Format,
    Init,
    Interpolation,
    Inverse,
    Loss,
    Matrix,
    Means,
    Model,
    NewSize,
    Numbers,
    OutFolder,
    ParityArithmetic,
    Quality,
    Ray,
    Report,
    ResizeArithmetic,
    Resume,
    Scale,
    Scales,
    Shear,
    ShownBorder,
    Size,
    Translate,
    Workers,
    gather,
    option,
    whole,
)
from warpkit.cli.programs import compare, identify
from warpkit.cli.stderr import say
from warpkit.cli.undistort import undistort
from warpkit.cli.view import view

app = typer.Typer(
    name="warpkit",
    help="Warp, resize, undistort and align images, with the pixels of OpenCV or Pillow.",
    epilog="Run warpkit COMMAND --help for the options of a command.",
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

command = partial(app.command, cls=Command)

INTERRUPTED = 130
"""The exit status after Ctrl-C, as in a shell; typer returns it without a message."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    words = gather(sys.argv[1:] if argv is None else argv) or ["--help"]
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"PIL\b")  # about sizes and metadata
            # one line for a warning, too, such as that about a sphere that is not 2 : 1
            warnings.showwarning = lambda message, *place: say(" ".join(str(message).split()))
            status = app(words, prog_name="warpkit", standalone_mode=False) or 0
        if sys.stdout is not None:
            sys.stdout.flush()
        return fail("interrupted", status) if status == INTERRUPTED else status
    except (typer.Abort, KeyboardInterrupt):
        return fail("interrupted", INTERRUPTED)
    except typer.TyperException as error:
        return fail(" ".join(error.format_message().split()), error.exit_code)
    except OSError as error:  # only an error of a write, such as one to stdout, names no file
        if error.filename is None:
            leave_stdout()
        return fail(f"{error.filename or 'standard output'}: {reason(error)}", 1)
    except Exception as error:
        if (cause := cause_of(error)) is None:
            raise
        return fail(*cause)


def fail(message: str, status: int) -> int:
    """Print an error as one line on stderr."""
    say(message)
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
    """Options before the command."""


@command(short_help="Warp image files.")
def warp(
    files: Files = None,
    out: OutFolder = None,
    workers: Workers = None,
    report: Report = None,
    resume: Resume = False,
    ray: Ray = None,
    angle: Angle = None,
    scale: Scale = None,
    shear: Shear = None,
    translate: Translate = None,
    center: Center = None,
    matrix: Matrix = None,
    inverse: Inverse = False,
    corners: Corners = None,
    size: Size = None,
    interpolation: Interpolation = "bilinear",
    antialias: Antialias = False,
    border: ShownBorder = "constant",
    border_value: BorderValue = None,
    arithmetic: Arithmetic = "exact",
    format: Format = None,
    quality: Quality = None,
) -> int:
    """Warp images: warpkit warp IN OUT, or warpkit warp IN ... --out DIR.

    By an angle, scale, shear and translation about the centre, by a matrix, or by four corners.
    Sizes are height and width; pixels are (x, y), and the centre of the top-left pixel is (0, 0).

    A result keeps its image's kind (grey, colour, alpha, palette, CMYK; 16-bit, 32-bit and
    floating-point grey) if its format supports it; conversions are reported on stderr. With --out,
    files keep their names; those that fail are listed at the end.
    """
    from warpkit.cli.warp.many import Folder
    from warpkit.cli.warp.run import run
    from warpkit.cli.warp.work import Options

    parts = {"angle": angle, "scale": scale, "shear": shear, "translate": translate}
    parts = {name: v for name, v in {**parts, "center": center}.items() if v is not None}
    options = Options(
        parts=parts,
        matrix=matrix,
        inverse=inverse,
        corners=corners,
        size=size,
        interpolation=interpolation,
        antialias=antialias,
        border=border,
        border_value=border_value or Numbers((0.0,)),
        arithmetic=arithmetic,
    )
    status = run(files or [], Folder(out, workers, report, resume, ray), format, quality, options)
    if status == 0 and not options.moves and format is None:
        say("no --angle, --scale, --matrix or the like: every pixel stayed in place")
    return status


@command(short_help="Resize image files.")
def resize(
    files: Files = None,
    out: OutFolder = None,
    workers: Workers = None,
    report: Report = None,
    resume: Resume = False,
    ray: Ray = None,
    size: NewSize = None,
    scale: Scales = None,
    interpolation: Filter = "bilinear",
    antialias: Means = None,
    arithmetic: ResizeArithmetic = "exact",
    format: Format = None,
    quality: Quality = None,
) -> int:
    """Resize images: warpkit resize IN OUT, or warpkit resize IN ... --out DIR.

    To a height and width, or by a scale, with warpkit's own pixels, cv2.resize's or Pillow's.
    Files, kinds of images and errors are as for warpkit warp.
    """
    from warpkit.cli.resize import Options
    from warpkit.cli.warp.many import Folder
    from warpkit.cli.warp.run import run

    options = Options(size, scale, interpolation, antialias, arithmetic)
    return run(files or [], Folder(out, workers, report, resume, ray), format, quality, options)


command("export-resize", short_help="Write a resize as an ONNX model.")(export_resize)
command(short_help="Undistort image files.")(undistort)
command(short_help="Render views of 360-degree images.")(view)


@command(short_help="Align two image files.")
def align(
    moving: Annotated[str, typer.Argument(metavar="MOVING", help="The image to move.")],
    fixed: Annotated[str, typer.Argument(metavar="FIXED", help="The image to align it with.")],
    out: Annotated[str, typer.Argument(metavar="OUT", help="The result, with FIXED's size.")],
    model: Model = "affine",
    loss: Loss = "ecc",
    init: Init = None,
    matrix_out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the matrix for warpkit warp --matrix."),
    ] = None,
    overlay: Annotated[
        Path | None,
        typer.Option(metavar="PNG", help="Write both images overlaid, before and after."),
    ] = None,
    interpolation: Interpolation = "bilinear",
) -> int:
    """Align MOVING with FIXED: warpkit align MOVING FIXED OUT.

    Prints the correlation, the number of steps and the matrix, MOVING pixel to FIXED pixel. In the
    overlay MOVING is red and FIXED green and blue: they agree where it is grey. The exit status is
    1 if the alignment does not converge; the files then hold the best result found.
    """
    from warpkit.cli.align import Options, run

    options = Options(model, loss, init == "search", matrix_out, overlay, interpolation)
    return run(moving, fixed, out, options)


@command()
def demo(
    image: Annotated[
        Path | None,
        typer.Argument(metavar="IMAGE", help="A photograph of your own. [default: warpkit's]"),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="PNG", help="The figure to write.")] = Path(
        "demo.png"
    ),
) -> None:
    """Warp a photograph as OpenCV does, and find a hidden warp.

    Writes one figure, and takes a few seconds.
    """
    from warpkit.cli.demo.run import run

    run(image, out)


@command(short_help="Compare with the installed OpenCV, pixel by pixel.")
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
    """Warp photographs and noise with warpkit and the installed OpenCV, and count the differences.

    Covers every map, interpolation, border, type and number of channels, which takes about a
    minute; then every filter of resize, with OpenCV, Pillow and other libraries. The exit status is
    1 if a guaranteed pixel differs.
    """
    from warpkit.cli.parity import run

    try:
        return run(images, html, json, arithmetic)
    except ImportError as error:
        return fail(str(error), 1)


command(short_help="Identify a preprocessing program.")(identify)
command(short_help="Explain how two preprocessing programs differ.")(compare)


@command(short_help="Fool a classifier with a perturbed photograph.")
def attack(
    image: Annotated[
        Path | None,
        typer.Argument(metavar="IMAGE", help="A photograph of your own. [default: warpkit's]"),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="PNG", help="The figure to write.")] = Path(
        "attack.png"
    ),
    epsilon: Annotated[int, option(whole(255), "N", "The largest change, in levels of 255.")] = 16,
    steps: Annotated[int, option(whole(), "N", "Steps of the descent.")] = 40,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A classifier: TorchScript or torch.export. [default: a small one]",
        ),
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The names of its classes, one per line.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The target class. [default: any other class]"),
    ] = None,
    pipeline: Annotated[
        str | None,
        typer.Option(metavar="STEPS", help="Its preprocessing: resize:224:pillow,normalize"),
    ] = None,
    image_out: Annotated[
        Path | None, typer.Option(metavar="PNG", help="Where to write the perturbed photograph.")
    ] = None,
    jpeg: Annotated[
        tuple[int, int] | None,
        typer.Option(
            metavar="LOW HIGH", help="Also through JPEG files of qualities in this range."
        ),
    ] = None,
) -> None:
    """Perturb a photograph so that a model misclassifies it, even rotated and scaled.

    The steps of --pipeline are resize:SIZE:ARITHMETIC:INTERPOLATION, crop:SIZE, jpeg:QUALITY,
    normalize:MEAN:STD, scale:FACTOR, bgr and round, separated by commas; the model receives their
    result for the 8-bit photograph, as floats in [0, 1]. Without --model, a small classifier of
    five photographs is used: astronaut, brick, coffee, rocket, text. The photograph is perturbed
    twice, without and with random transformations; both are tested with unseen transformations.
    With --jpeg, each transformed picture is also a JPEG file of a random quality.
    Writes one figure.

    A model file is a program, and runs with your permissions: use only files from people you trust.
    """
    from warpkit.cli.attack.run import Options, run

    run(image, out, epsilon, steps, Options(model, labels, target, pipeline, image_out, jpeg))


@command(short_help="Time warps on this machine, with grid_sample, kornia and OpenCV.")
def bench(
    quick: Annotated[bool, typer.Option("--quick", help="5 turns instead of 21.")] = False,
    only: Annotated[
        str, typer.Option(metavar="TEXT", help="Only workloads whose name contains this.")
    ] = "",
    threads: Annotated[int | None, option(whole(), "N", "Threads. [default: torch's]")] = None,
    out: Annotated[Path | None, typer.Option(metavar="CSV", help="Write the rows.")] = None,
    loud: Annotated[
        bool, typer.Option("--loud", help="Accept results measured under load.")
    ] = False,
) -> int:
    """Time warps on the CPU, forward and with gradients, in turns with other libraries.

    Every workload first checks that all libraries compute the same numbers. The ratios are medians
    over the turns of (other / warpkit): above 1, warpkit is faster. kornia and OpenCV are included
    if they are installed. If other programs used the machine, the exit status is 1 and nothing is
    written.
    """
    import torch

    from warpkit.cli.bench.run import run

    try:
        return run(quick, only, threads or torch.get_num_threads(), out, loud)
    except ValueError as error:
        raise CommandError(str(error)) from None
