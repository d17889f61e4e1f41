"""`warpkit undistort`: undistorts one image."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from warpkit import choices
from warpkit.cli.errors import CommandError
from warpkit.cli.options import (
    Alpha,
    Antialias,
    Arithmetic,
    BorderValue,
    Camera,
    Distortion,
    Files,
    Format,
    Interpolation,
    Numbers,
    OutFolder,
    Quality,
    Ray,
    Report,
    Resume,
    ShownBorder,
    Workers,
)

if TYPE_CHECKING:
    from warpkit.cli.image_kinds import Picture


def undistort(
    files: Files = None,
    out: OutFolder = None,
    workers: Workers = None,
    report: Report = None,
    resume: Resume = False,
    ray: Ray = None,
    camera: Camera = None,
    distortion: Distortion = None,
    fisheye: Annotated[
        bool, typer.Option("--fisheye", help="The coefficients are cv2.fisheye's.")
    ] = False,
    alpha: Alpha = None,
    interpolation: Interpolation = "bilinear",
    antialias: Antialias = False,
    border: ShownBorder = "constant",
    border_value: BorderValue = None,
    arithmetic: Arithmetic = "exact",
    format: Format = None,
    quality: Quality = None,
) -> int:
    """Undistort images: warpkit undistort IN OUT --camera FX FY CX CY --distortion K1 K2 ...

    With the matrix and the coefficients of a calibration, such as cv2.calibrateCamera's. Files,
    kinds of images and --out are as in warpkit warp.
    """
    from warpkit.cli.warp.many import Folder
    from warpkit.cli.warp.run import run

    options = Options(
        camera=camera,
        distortion=distortion,
        fisheye=fisheye,
        alpha=alpha,
        interpolation=interpolation,
        antialias=antialias,
        border=border,
        border_value=border_value or Numbers((0.0,)),
        arithmetic=arithmetic,
    )
    return run(files or [], Folder(out, workers, report, resume, ray), format, quality, options)


@dataclass(frozen=True)
class Options:
    """The options of `warpkit undistort`, except files."""

    camera: Numbers | None
    distortion: Numbers | None
    fisheye: bool
    alpha: Numbers | None
    interpolation: choices.Interpolation
    antialias: bool
    border: choices.Border
    border_value: Numbers
    arithmetic: choices.Arithmetic

    def check(self) -> None:
        """Reject options that are invalid for every picture."""
        from warpkit.core.numbers import join_or
        from warpkit.engine.definitions.lens_models import COUNTS

        for name, value in (("--camera", self.camera), ("--distortion", self.distortion)):
            if value is None:
                raise CommandError(f"Missing option '{name}'.")
        counts = (2, *COUNTS[self.model])
        if self.distortion is not None and len(self.distortion) not in counts:
            wanted = f"{join_or(counts)} numbers" + " with --fisheye" * self.fisheye
            raise CommandError(f"--distortion takes {wanted}, got {len(self.distortion)}")
        if self.camera is not None and min(self.camera[:2]) <= 0:
            raise CommandError("--camera takes positive focal lengths FX and FY")
        if self.alpha is not None and not 0 <= self.alpha[0] <= 1:
            raise CommandError("--alpha takes a number from 0 to 1")
        if self.antialias and self.arithmetic != "exact":
            raise CommandError(f"--antialias is for --arithmetic exact, got {self.arithmetic}")

    @property
    def model(self) -> choices.LensModel:
        """The lens model's name in `warpkit.camera`."""
        return "fisheye" if self.fisheye else "brown"

    def apply(self, picture: Picture) -> Picture:
        """The picture that the camera would take without lens distortion."""
        import torch

        from warpkit import camera
        from warpkit.cli.warp.work import sample

        fx, fy, cx, cy = self.camera or (1.0, 1.0, 0.0, 0.0)  # `check` rejects None
        matrix = torch.tensor([[fx, 0, cx], [0, fy, cy], [0, 0, 1]], dtype=torch.float64)
        numbers = self.distortion or ()
        k = torch.tensor((*numbers, 0, 0) if len(numbers) == 2 else numbers, dtype=torch.float64)
        view, size = None, (picture.pixels.shape[-2], picture.pixels.shape[-1])
        if self.alpha is not None:
            try:
                view = camera.optimal_camera_matrix(
                    matrix, k, size, self.alpha[0], model=self.model
                )
            except ValueError:
                text = "--alpha is for lenses that show a part of every side of the image: of this "
                text += "one a whole side is beyond its fold" + ", or 90 degrees" * self.fisheye
                raise CommandError(text) from None
        undistort = partial(
            camera.undistort,
            camera_matrix=matrix,
            distortion=k,
            new_camera_matrix=view,
            model=self.model,
            interpolation=self.interpolation,
            antialias=self.antialias,
            border=self.border,
            arithmetic=self.arithmetic,
        )
        return sample(picture, undistort, self)
