"""Random warps for torchvision's transforms v2, by warpkit's sampling.

Subclasses of torchvision's own: the same argument names, ranges and conventions (angles clockwise,
shears as torchvision defines them), the same random draws from the same seed, and boxes and
keypoints moved by torchvision's code through the same matrix. Images, videos and masks are warped
by `warp_affine` and `warp_perspective`: gradients also with a fill, 8 and 16 bits rounded as in
OpenCV, positions in float64, every interpolation and border.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import torch
from torch import Tensor

from warpkit._environment import how_to_install

try:
    import PIL.Image
    from torchvision import tv_tensors
    from torchvision.transforms import v2
    from torchvision.transforms.v2._utils import _get_fill, query_size
except ModuleNotFoundError as error:
    needs = f"warpkit.transforms needs torchvision: {how_to_install('torchvision')}"
    raise ModuleNotFoundError(needs, name=error.name) from error

from warpkit import _checks as checks
from warpkit.geometry import affine_matrix, compose
from warpkit.kernels.rules import BORDERS, INTERPOLATIONS
from warpkit.warp import ALIASES, warp_affine, warp_perspective

SHOWN = tuple(border for border in (*BORDERS, *ALIASES) if border != "transparent")

PIL_MODES = ("L", "LA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "I;16", "F")
"""Those whose channels are numbers of a type that images have: no bits, palettes or int32."""


class RandomAffine(v2.RandomAffine):
    """torchvision.transforms.v2.RandomAffine, warped by warpkit.

    Args:
        degrees: (low, high), or a number for (-degrees, degrees); clockwise, as in torchvision.
        translate: (x, y), the largest shifts as fractions of width and height.
        scale: (low, high).
        shear: a number, (low, high) along x, or four numbers, in degrees.
        interpolation: as in `warp_affine`, or torchvision's InterpolationMode; masks are nearest.
        fill: a number, one for each channel, or a dictionary by type; for border="constant".
        center: (x, y) to turn about, from the top-left corner; the middle where None.
        border: as in `warp_affine`, "transparent" excepted.

    A pixel on the image's edge is `fill` as far as it is outside; torchvision multiplies it by its
    coverage twice there, unless fill is None.

    Takes and returns what torchvision's does: tensors, PIL images, tv_tensors, and structures of
    them, of which images, videos, masks, boxes and keypoints move together.

    >>> RandomAffine((90, 90))(torch.tensor([[[1, 2], [3, 4]]], dtype=torch.uint8))
    tensor([[[3, 1],
             [4, 2]]], dtype=torch.uint8)
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        *,
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: Any = "nearest",
        fill: Any = 0,
        center: Sequence[float] | None = None,
        border: str = "constant",
    ) -> None:
        name = mode_name("RandomAffine", interpolation)
        super().__init__(
            degrees,  # pyright: ignore
            translate,
            scale,
            shear,  # pyright: ignore
            fill=fill,
            center=None if center is None else list(center),
        )
        self.interpolation = name
        self.border = checks.check_name("RandomAffine", "border", border, SHOWN)

    def matrix(self, params: dict[str, Any], size: Sequence[int]) -> Tensor:
        """What the drawn `params` do to images of `size` (H, W): (2, 3), source -> destination."""
        height, width = size
        x, y = self.center or (width / 2, height / 2)
        middle = torch.tensor((x - 0.5, y - 0.5), dtype=torch.float64)  # torchvision's are edges
        shear_x, shear_y = params["shear"]
        return compose(
            affine_matrix(shear=(-shear_x, 0.0), center=middle),
            affine_matrix(shear=(0.0, -shear_y), center=middle),
            affine_matrix(
                angle=-params["angle"],
                scale=params["scale"],
                translation=params["translate"],
                center=middle,
            ),
        )

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One input under the drawn `params`."""
        if not has_pixels(inpt):
            return super().transform(inpt, params)
        fill = _get_fill(self._fill, type(inpt))
        return warp(
            inpt, lambda size: self.matrix(params, size), self.interpolation, self.border, fill
        )


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
        *,
        p: float = 0.5,
        interpolation: Any = "bilinear",
        fill: Any = 0,
        border: str = "constant",
    ) -> None:
        name = mode_name("RandomPerspective", interpolation)
        super().__init__(distortion_scale, p, fill=fill)
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

    def matrix(self, params: dict[str, Any]) -> Tensor:
        """What the drawn `params` do: (3, 3), destination -> source pixels."""
        last = torch.tensor([*params["coefficients"], 1.0], dtype=torch.float64).reshape(3, 3)
        half = torch.tensor((0.5, 0.5), dtype=torch.float64)  # torchvision's are edges
        return compose(affine_matrix(translation=half), last, affine_matrix(translation=-half))

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One input under the drawn `params`."""
        if not has_pixels(inpt):
            return super().transform(inpt, params)
        fill = _get_fill(self._fill, type(inpt))
        return warp(inpt, lambda size: self.matrix(params), self.interpolation, self.border, fill)


def mode_name(function: str, interpolation: Any) -> str:
    """warpkit's name of an interpolation, which may be torchvision's."""
    value = interpolation.value if isinstance(interpolation, Enum) else interpolation
    return checks.check_name(function, "interpolation", value, INTERPOLATIONS)


def has_pixels(value: Any) -> bool:
    """Whether `value` is an image, a video or a mask, with or without a type of torchvision."""
    if isinstance(value, PIL.Image.Image | tv_tensors.Image | tv_tensors.Video | tv_tensors.Mask):
        return True
    return isinstance(value, Tensor) and not isinstance(value, tv_tensors.TVTensor)


def warp(inpt: Any, matrix_of: Any, interpolation: str, border: str, fill: Any) -> Any:
    """Any kind of image under the matrix for its size; what comes out is what went in.

    A matrix of three rows maps destination -> source.
    """
    if isinstance(inpt, PIL.Image.Image):
        if inpt.mode not in PIL_MODES:
            wanted = f"a PIL image of one of the modes {', '.join(PIL_MODES)}: see convert()"
            checks.fail("warpkit.transforms", "inpt", wanted, repr(inpt.mode))
        pixels = v2.functional.pil_to_tensor(inpt)
        warped = warp(pixels, matrix_of, interpolation, border, fill)
        if inpt.mode == "I;16":
            warped = warped.view(torch.int16)  # the type by which torchvision knows it
        return v2.functional.to_pil_image(warped, mode=inpt.mode)
    checks.check_dense("warpkit.transforms", "inpt", inpt)
    if inpt.numel() == 0:  # no mask, where there is no object
        return inpt
    is_mask = isinstance(inpt, tv_tensors.Mask)
    pixels = inpt.as_subclass(torch.Tensor)
    image = pixels[None] if pixels.ndim == 2 else pixels
    if is_mask:
        image = image.double()  # holds every label, also of the types that images do not have
    matrix = matrix_of(image.shape[-2:]).to(image.device)
    options = {
        "interpolation": "nearest" if is_mask else interpolation,
        "border": border,
        "border_value": 0.0 if fill is None else fill,
    }
    if len(matrix) == 2:
        warped = warp_affine(image, matrix, **options)
    else:
        warped = warp_perspective(image, matrix, inverse=True, **options)
    result = warped.to(pixels.dtype).reshape(pixels.shape)
    if not isinstance(inpt, tv_tensors.TVTensor):
        return result
    return tv_tensors.wrap(result, like=inpt)  # pyright: ignore
