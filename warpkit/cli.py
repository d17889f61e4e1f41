"""The command line. An error that a user can cause is one line on stderr, exit status 1 or 2."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import torch
import typer
from torch import Tensor

import warpkit as wk
from warpkit.cli_options import Numbers, gather, numbers, one_of
from warpkit.image_files import ImageFileError, format_of, read_image, write_image
from warpkit.kernels.rules import BORDERS, INTERPOLATIONS

SHOWN = tuple(border for border in BORDERS if border != "transparent")
"""The command line's borders: it has no background for "transparent" to show."""

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
        return app(words, prog_name="warpkit", standalone_mode=False) or 0
    except (typer.Abort, KeyboardInterrupt):
        return fail("interrupted", 130)
    except typer.TyperException as error:
        return fail(error.format_message(), error.exit_code)
    except CommandError as error:
        return fail(str(error), 2)
    except ImageFileError as error:
        return fail(str(error), 1)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "allocate memory" not in str(error):
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
    source: Annotated[Path, typer.Argument(metavar="IN", help="The image to warp.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Where to write the result.")],
    angle: Annotated[
        Numbers | None,
        typer.Option(parser=numbers(1), metavar="A", help="Degrees, counter-clockwise."),
    ] = None,
    scale: Annotated[
        Numbers | None,
        typer.Option(parser=numbers(1, positive=True), metavar="S", help="2 is twice as large."),
    ] = None,
    shear: Annotated[
        Numbers | None,
        typer.Option(parser=numbers(1, 2), metavar="X [Y]", help="Degrees along x (and y)."),
    ] = None,
    translate: Annotated[
        Numbers | None,
        typer.Option(parser=numbers(2), metavar="X Y", help="Pixels to the right and down."),
    ] = None,
    center: Annotated[
        Numbers | None,
        typer.Option(
            parser=numbers(2), metavar="X Y", help="The pixel to turn about. [default: the middle]"
        ),
    ] = None,
    matrix: Annotated[
        Numbers | None,
        typer.Option(
            parser=numbers(6, 9),
            metavar="M ...",
            help="In place of the above: 6 numbers (affine) or 9 (perspective), row by row, "
            "source pixel to destination pixel, as for cv2.warpAffine.",
        ),
    ] = None,
    size: Annotated[
        Numbers | None,
        typer.Option(
            parser=numbers(2, positive=True, whole=True),
            metavar="H W",
            help="The result's height and width. [default: those of IN]",
        ),
    ] = None,
    interpolation: Annotated[
        str,
        typer.Option(parser=one_of(INTERPOLATIONS), metavar="NAME", help=", ".join(INTERPOLATIONS)),
    ] = "bilinear",
    border: Annotated[
        str, typer.Option(parser=one_of(SHOWN), metavar="NAME", help=", ".join(SHOWN))
    ] = "constant",
    border_value: Annotated[
        Numbers | None,
        typer.Option(
            parser=numbers(1, 2, 3, 4),
            metavar="V ...",
            help="For border constant: one number, or one for each channel. [default: 0]",
        ),
    ] = None,
) -> None:
    """Warp an image file by an angle, scale, shear and translation, or by a matrix.

    Sizes are height and width; pixels are (x, y), and the centre of the top-left pixel is (0, 0).
    The result keeps the image's kind (grey, colour, alpha, palette, 16-bit grey).
    """
    format_of(out)  # refused before any work
    picture = read_image(source)
    channels, height, width = picture.pixels.shape
    parts = {
        "angle": angle,
        "scale": scale,
        "shear": shear,
        "translate": translate,
        "center": center,
    }
    to_out = matrix_of(matrix, parts, wk.image_center((height, width)))
    value = border_value or Numbers((0.0,))
    if len(value) not in (1, channels):
        raise CommandError(
            f"--border-value takes 1 or {channels} numbers for this image, got {len(value)}"
        )
    warp_by = wk.warp_affine if to_out.shape == (2, 3) else wk.warp_perspective
    pixels = warp_by(
        picture.pixels,
        to_out,
        size=(int(size[0]), int(size[1])) if size else None,
        interpolation=interpolation,
        border=border,
        border_value=torch.tensor(value, dtype=torch.float64),
    )
    write_image(out, replace(picture, pixels=pixels))


@app.command()
def demo(
    image: Annotated[
        Path | None, typer.Argument(help="A photograph of your own. [default: warpkit's]")
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


def matrix_of(
    matrix: Numbers | None, parts: dict[str, Numbers | None], middle: tuple[float, float]
) -> Tensor:
    """The matrix that the options stand for, float64: (2, 3), or (3, 3) where given so."""
    given = {name: value for name, value in parts.items() if value is not None}
    if matrix is None:
        return affine_of(given, middle)
    if given:
        raise CommandError(f"--matrix takes the place of --{next(iter(given))}: give one of them")
    result = torch.tensor(matrix, dtype=torch.float64).reshape(-1, 3)
    try:
        wk.invert(result)
    except ValueError:
        raise CommandError("--matrix must be invertible") from None
    return result


def affine_of(given: dict[str, Numbers], middle: tuple[float, float]) -> Tensor:
    """The affine matrix (2, 3) of the options that were given, about `middle` unless told."""
    angle, scale, shear, translation, center = (
        torch.tensor(given.get(name, default), dtype=torch.float64)
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
