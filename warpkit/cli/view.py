"""`warpkit view`: renders a camera's view of an equirectangular image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from warpkit import choices
from warpkit.cli.errors import CommandError
from warpkit.cli.options import (
    Antialias,
    Files,
    Format,
    Interpolation,
    Numbers,
    OutFolder,
    Quality,
    Ray,
    Report,
    Resume,
    Workers,
    numbers,
    option,
)
from warpkit.cli.sizes import check_size

if TYPE_CHECKING:
    from torch import Tensor

    from warpkit.cli.image_kinds import Picture

FIELD, SIZE = 90.0, (720, 1280)
"""The defaults of a view: degrees; height and width."""

Size = Annotated[
    Numbers | None,
    option(
        numbers(2, positive=True, whole=True),
        "H W",
        "The view's height and width. [default: 720 1280]",
    ),
]
Field = Annotated[
    Numbers | None,
    option(
        numbers(1, positive=True),
        "A",
        "The horizontal field of view in degrees. [default: 90]",
    ),
]
Yaw = Annotated[Numbers | None, option(numbers(1), "A", "Degrees to the right.")]
Pitch = Annotated[Numbers | None, option(numbers(1), "A", "Degrees upwards.")]
Roll = Annotated[
    Numbers | None,
    option(numbers(1), "A", "Degrees that the camera tilts to the right."),
]
Fisheye = Annotated[bool, typer.Option("--fisheye", help="A fisheye view: --fov may be up to 360.")]


def view(
    files: Files = None,
    out: OutFolder = None,
    workers: Workers = None,
    report: Report = None,
    resume: Resume = False,
    ray: Ray = None,
    fov: Field = None,
    yaw: Yaw = None,
    pitch: Pitch = None,
    roll: Roll = None,
    size: Size = None,
    fisheye: Fisheye = False,
    interpolation: Interpolation = "bilinear",
    antialias: Antialias = False,
    format: Format = None,
    quality: Quality = None,
) -> int:
    """Render a view of a 360-degree image: warpkit view SPHERE OUT --yaw 30 --pitch 10

    SPHERE is an equirectangular image, 360 degrees wide and 180 high, from a 360-degree camera or a
    renderer. Files, kinds of images and --out are as in warpkit warp.
    """
    from warpkit.cli.warp.many import Folder
    from warpkit.cli.warp.run import run

    angles = {"fov": fov, "yaw": yaw, "pitch": pitch, "roll": roll}
    options = Options(
        angles={name: value[0] for name, value in angles.items() if value is not None},
        size=size,
        fisheye=fisheye,
        interpolation=interpolation,
        antialias=antialias,
    )
    return run(files or [], Folder(out, workers, report, resume, ray), format, quality, options)


@dataclass(frozen=True)
class Options:
    """The options of `warpkit view`, except files."""

    angles: Mapping[str, float]
    """fov, yaw, pitch and roll, as far as they are given."""
    size: Numbers | None
    fisheye: bool
    interpolation: choices.Interpolation
    antialias: bool

    def check(self) -> None:
        """Reject options that are invalid for every picture."""
        if self.size:
            check_size("--size", *self.size)
        field = self.angles.get("fov", FIELD)
        if self.fisheye and field > 360:
            raise CommandError(f"--fov takes at most 360 degrees, got {field:g}")
        if not self.fisheye and field >= 180:
            raise CommandError(f"--fov takes less than 180 without --fisheye, got {field:g}")

    def apply(self, picture: Picture) -> Picture:
        """The view that a picture gives."""
        import torch

        from warpkit import camera
        from warpkit.cli.warp.work import mix_visible

        height, width = self.size or SIZE
        degrees = torch.tensor(
            [self.angles.get(name, 0.0) for name in ("yaw", "pitch", "roll")], dtype=torch.float64
        )
        turn = camera.rotation(yaw=degrees[0], pitch=degrees[1], roll=degrees[2])

        def look(image: Tensor, border_value: object = None) -> Tensor:
            return camera.from_sphere(
                image,
                (int(height), int(width)),
                field_of_view=self.angles.get("fov", FIELD),
                rotation=turn,
                model="fisheye" if self.fisheye else "brown",
                antialias=self.antialias,
                interpolation=self.interpolation,
            )

        pixels = look(picture.pixels)
        mixes = self.interpolation != "nearest" or self.antialias
        if picture.mode in ("LA", "RGBA") and mixes and picture.pixels[-1].min() < 255:
            mix_visible(look, picture.pixels, torch.full((len(pixels),), 255.0), pixels)
        return replace(picture, pixels=pixels)
