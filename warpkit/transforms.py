"""Random warps for torchvision's transforms v2, by warpkit's sampling.

Subclasses of torchvision's own: the same argument names, ranges and conventions (angles clockwise,
shears as torchvision defines them), the same random draws from the same seed, and boxes and
keypoints moved by torchvision's code through the same matrix. Images, videos and masks are warped
by `warp_affine` and `warp_perspective`: gradients also with a fill, 8 and 16 bits rounded as in
OpenCV, positions in float64, every interpolation and border.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from enum import Enum
from math import cos, radians, sin, tan
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from warpkit.core.environment import how_to_install

try:
    import PIL.Image
    from torchvision import tv_tensors
    from torchvision.transforms import v2
    from torchvision.transforms.v2._utils import _get_fill, query_size
except ModuleNotFoundError as error:
    needs = f"warpkit.transforms needs torchvision: {how_to_install('torchvision')}"
    raise ModuleNotFoundError(needs, name=error.name) from error

from warpkit.core import checks
from warpkit.engine.sampling.labels import as_labels, saturated
from warpkit.engine.sampling.maps import inverse_map
from warpkit.engine.sampling.rules import BORDERS, INTERPOLATIONS
from warpkit.geometry.arguments import as_result
from warpkit.warp import ALIASES, warp_affine, warp_perspective

__all__ = ["RandomAffine", "RandomPerspective"]

SHOWN = tuple(border for border in (*BORDERS, *ALIASES) if border != "transparent")

PIL_MODES = ("L", "LA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "I", "I;16", "F")
"""Those whose channels are numbers: no bits and no palettes."""

PIL_NUMBERS = {mode.value: mode.name.lower() for mode in PIL.Image.Resampling}

Rows = tuple[tuple[float, float, float], ...]
"""A matrix, row by row."""


class RandomAffine(v2.RandomAffine):
    """torchvision.transforms.v2.RandomAffine, warped by warpkit.

    Args:
        degrees: (low, high), or a number for (-degrees, degrees); clockwise, as in torchvision.
        translate: (x, y), the largest shifts as fractions of width and height.
        scale: (low, high).
        shear: a number, (low, high) along x, or four numbers, in degrees.
        interpolation: as in `warp_affine`, or torchvision's InterpolationMode, or Pillow's number
            (2: bilinear); masks are nearest.
        fill: a number, one for each channel, or a dictionary by type; for border="constant".
        center: (x, y) to turn about, from the top-left corner; the middle where None.
        border: as in `warp_affine`, "transparent" excepted.

    A pixel on the image's edge is `fill` as far as it is outside; torchvision multiplies it by its
    coverage twice there, unless fill is None.

    Takes and returns what torchvision's does: tensors of every integer type, bool too, and float,
    PIL images, tv_tensors, and structures of them, of which images, videos, masks, boxes and
    keypoints move together.

    Raises:
        ValueError, TypeError: naming the argument, what was wanted and what came.

    >>> RandomAffine((90, 90))(torch.tensor([[[1, 2], [3, 4]]], dtype=torch.uint8))
    tensor([[[3, 1],
             [4, 2]]], dtype=torch.uint8)
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: Any = "nearest",
        fill: Any = 0,
        center: Sequence[float] | None = None,
        *,
        border: str = "constant",
    ) -> None:
        name = mode_name("RandomAffine", interpolation)
        super().__init__(
            degrees,  # pyright: ignore
            translate,
            scale,
            shear,  # pyright: ignore
            fill=check_fill("RandomAffine", fill),
            center=check_center(center),
        )
        self.interpolation = name
        self.border = checks.check_name("RandomAffine", "border", border, SHOWN)

    def matrix(self, params: dict[str, Any], size: Sequence[int]) -> Tensor:
        """What the drawn `params` do to images of `size` (H, W): (2, 3), source -> destination."""
        return as_result(torch.tensor(self._rows(params, size), dtype=torch.float64), torch.float64)

    def _rows(self, params: dict[str, Any], size: Sequence[int]) -> Rows:
        """Numbers: a matrix made of tensors takes ten times as long as warping a small image."""
        height, width = size
        x, y = self.center or (width / 2, height / 2)
        x, y = x - 0.5, y - 0.5  # torchvision's are edges
        angle, scale, (right, down) = radians(params["angle"]), params["scale"], params["translate"]
        tx, ty = (tan(radians(shear)) for shear in params["shear"])
        c, s = cos(angle) * scale, sin(angle) * scale
        # turn [[c, -s], [s, c]] after shear y [[1, 0], [-ty, 1]] after shear x [[1, -tx], [0, 1]]
        a, d = c + s * ty, s - c * ty
        b, e = -s - a * tx, c - d * tx
        return (a, b, x - a * x - b * y + right), (d, e, y - d * x - e * y + down)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One input under the drawn `params`."""
        if not has_pixels(inpt):
            return super().transform(inpt, params)
        fill = _get_fill(self._fill, type(inpt))
        return warp(self, inpt, lambda size: self._rows(params, size), fill)


class RandomPerspective(v2.RandomPerspective):
    """torchvision.transforms.v2.RandomPerspective, warped by warpkit.

    Args:
        distortion_scale: in [0, 1]: how far the corners move, in parts of half the image.
        p: the probability of doing anything.
        interpolation, fill, border: as in `RandomAffine`.

    >>> RandomPerspective(0.0, p=1.0)(torch.ones(1, 2, 2))
    tensor([[[1., 1.],
             [1., 1.]]])
    """

    def __init__(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: Any = "bilinear",
        fill: Any = 0,
        *,
        border: str = "constant",
    ) -> None:
        name = mode_name("RandomPerspective", interpolation)
        super().__init__(distortion_scale, p, fill=check_fill("RandomPerspective", fill))
        self.interpolation = name
        self.border = checks.check_name("RandomPerspective", "border", border, SHOWN)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """torchvision's draw, which solves for the matrix of four corners that must differ."""
        try:
            return super().make_params(flat_inputs)
        except torch.linalg.LinAlgError:  # pyright: ignore
            size = query_size(flat_inputs)
            wanted = "large enough for its four corners to stay apart"
            checks.fail("RandomPerspective", "inpt", wanted, f"size {tuple(size)}")

    def matrix(self, params: dict[str, Any], size: Sequence[int] | None = None) -> Tensor:
        """What the drawn `params` do to images of `size` (H, W): (3, 3), source -> destination.

        Without `size`, which is deprecated, the matrix maps destination -> source.
        """
        to_source = torch.tensor(self._rows(params), dtype=torch.float64)
        if size is not None:
            return as_result(inverse_map(to_source), torch.float64)
        text = "RandomPerspective.matrix(params) maps destination -> source; "
        text += "matrix(params, size) maps source -> destination, as every matrix here"
        warnings.warn(text, FutureWarning, stacklevel=2)
        return to_source

    def _rows(self, params: dict[str, Any]) -> Rows:
        """Numbers, as RandomAffine's; torchvision's map destination -> source, between edges."""
        a, b, c, d, e, f, g, h = params["coefficients"]
        w = 1 + (g + h) / 2
        x, y = c + (a + b) / 2 - w / 2, f + (d + e) / 2 - w / 2
        return (a - g / 2, b - h / 2, x), (d - g / 2, e - h / 2, y), (g, h, w)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One input under the drawn `params`."""
        if not has_pixels(inpt):
            return super().transform(inpt, params)
        fill = _get_fill(self._fill, type(inpt))
        return warp(self, inpt, lambda size: self._rows(params), fill)


def mode_name(function: str, interpolation: Any) -> str:
    """warpkit's name of an interpolation, which may be torchvision's, or Pillow's number."""
    value = interpolation.value if isinstance(interpolation, Enum) else interpolation
    if isinstance(value, int) and not isinstance(value, bool) and value in PIL_NUMBERS:
        value = PIL_NUMBERS[value]
    value = "nearest" if value == "nearest-exact" else value
    return checks.check_name(function, "interpolation", value, INTERPOLATIONS)


def check_center(center: Any) -> list[float] | None:
    """A center is (x, y), or None."""
    if center is None:
        return None
    wanted = "(x, y), two numbers"
    try:
        pair = [float(number) for number in center]
    except (TypeError, ValueError):
        checks.fail("RandomAffine", "center", wanted, f"{center!r:.60}", TypeError)
    if isinstance(center, checks.TEXT) or len(pair) != 2:
        checks.fail("RandomAffine", "center", wanted, f"{center!r:.60}")
    return pair


def check_fill(function: str, fill: Any) -> Any:
    """A fill, in a form that torchvision reads: None, a number, some, or a dictionary of these."""
    if isinstance(fill, dict):
        return {kind: check_fill(function, value) for kind, value in fill.items()}
    if isinstance(fill, Real):
        return fill if isinstance(fill, int | float) else float(fill)
    several = isinstance(fill, checks.LISTS) and len(fill) > 0
    if fill is not None and not (several and all(isinstance(n, Real) for n in fill)):
        wanted = "a number, one for each channel, None, or a dictionary of these by type"
        checks.fail(function, "fill", wanted, f"{fill!r:.60}", TypeError)
    return fill


def has_pixels(value: Any) -> bool:
    """Whether `value` is an image, a video or a mask, with or without a type of torchvision."""
    if isinstance(value, tv_tensors.TVTensor):
        return isinstance(value, (tv_tensors.Image, tv_tensors.Video, tv_tensors.Mask))
    return isinstance(value, (Tensor, PIL.Image.Image))  # a tuple: `|` takes five times as long


def warp(
    transform: RandomAffine | RandomPerspective,
    inpt: Any,
    rows_of: Callable[[Sequence[int]], Rows],
    fill: Any,
) -> Any:
    """Any kind of image under the matrix for its size; what comes out is what went in.

    Two rows map source -> destination, three destination -> source.
    """
    name = type(transform).__name__
    if isinstance(inpt, PIL.Image.Image):
        if inpt.mode not in PIL_MODES:
            wanted = f"a PIL image of one of the modes {', '.join(PIL_MODES)}: see convert()"
            checks.fail(name, "inpt", wanted, repr(inpt.mode))
        # as a batch it is channels-last, as Pillow's pixels lie: 512 x 512 RGB in half the time
        warped = warp(transform, v2.functional.pil_to_tensor(inpt)[None], rows_of, fill)[0]
        if inpt.mode == "I;16":
            warped = warped.view(torch.int16)  # the type by which torchvision knows it
        return v2.functional.to_pil_image(warped, mode=inpt.mode)
    checks.check_dense(name, "inpt", inpt)
    if inpt.numel() == 0:  # no mask, where there is no object
        return inpt
    is_typed = isinstance(inpt, tv_tensors.TVTensor)
    pixels = inpt.as_subclass(torch.Tensor) if is_typed else inpt
    image = pixels[None] if pixels.ndim == 2 else pixels
    is_mask = isinstance(inpt, tv_tensors.Mask)
    interpolation = "nearest" if is_mask else transform.interpolation
    blended = interpolation != "nearest" and pixels.dtype in checks.LABELS
    if blended:  # as torchvision does; float64 holds all of them but 64 bits beyond 2^53
        image = image.double()
    checks.check_image(name, "inpt", image, labels=True)
    channels = image.shape[-3]
    if isinstance(fill, list) and len(fill) not in (1, channels):
        wanted = f"a number, or {channels}, for the channels of a {type(inpt).__name__} of shape "
        wanted += f"{checks.shape_of(pixels)} (a dictionary holds one for each type)"
        checks.fail(name, "fill", wanted, fill)
    rows = rows_of(image.shape[-2:])
    matrix = torch.tensor(rows, dtype=torch.float64, device=image.device)
    options = {
        "interpolation": interpolation,
        "border": transform.border,
        "border_value": 0.0 if fill is None else fill,
    }
    if len(rows) == 2:
        warped = warp_affine(image, matrix, **options)
    else:
        warped = warp_perspective(image, matrix, inverse=True, **options)
    if blended:
        warped = as_labels(saturated(warped, pixels.dtype), pixels.dtype)
    result = warped[0] if pixels.ndim == 2 else warped
    return tv_tensors.wrap(result, like=inpt) if is_typed else result  # pyright: ignore
