"""Warns about arguments in another library's convention.

Values are only read on the CPU, outside of tracing and transforms, and as few as necessary: one
number of a point field, the largest of the boxes. The function that the caller calls checks its
arguments. If it passes them on to another public function, it does so by `without_warnings`, so
that there is one warning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from itertools import product
from threading import local
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

from warpkit.core.caller_warnings import warn
from warpkit.core.tracing import is_eager

MOST_CHANNELS_LAST = 4
"""RGBA; an image at most this wide is more likely (H, W, C) than a narrow image."""
LEAST_SIDE = 24
"""Both sides of an (H, W, C) image, at least; a network's features are this narrow only if they are
also this low, such as (512, 4, 4)."""
MOST_SHARE = 4.0
"""A focal length relative to a side: 14 degrees across the image. No camera has so few pixels and
its centre in the first one."""
LEAST_IMAGE, LEAST_POINTS = 16, 512
"""Sides and points below which all may intentionally be near a corner, and the 4 us check
matters."""
SHARE_OUTSIDE = 0.5
"""The share of pixels that sample outside the image if a point field is read as offsets."""

MOST_OFFSET = 0.25
"""The longest offset that a warning tells from points, relative to the side: fields of points that
all lie in a sixteenth of the image are rare."""
WHOLE = {torch.float16: 2048, torch.bfloat16: 256}
"""The last of the whole numbers from 0 on that a type holds."""

MOST_STRETCH = 0.02
"""The difference of a sphere's sides from 2 : 1, relative to the width: sides that were rounded."""

P = ParamSpec("P")
R = TypeVar("R")


class _State(local):
    looked = 0
    """Running calls, in this thread, of functions whose arguments have been checked."""


_state = _State()


def without_warnings(function: Callable[P, R]) -> Callable[P, R]:
    """The function without these checks: its arguments have been checked before."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if torch.compiler.is_compiling():  # no checks there
            return function(*args, **kwargs)
        _state.looked += 1
        try:
            return function(*args, **kwargs)
        finally:
            _state.looked -= 1

    return call


def _is_readable(*values: Tensor) -> bool:
    """Whether to check, and whether the values can be read."""
    return values[0].device.type == "cpu" and not _state.looked and is_eager(*values)


def looks_channels_last(shape: Sequence[int]) -> bool:
    """Whether the shape of an image is more likely (..., H, W, C) than (..., C, H, W)."""
    channels, height, width = shape[-3:]
    return (
        type(width) is int and width <= MOST_CHANNELS_LAST and min(channels, height) >= LEAST_SIDE
    )


def warn_if_channels_last(function: str, argument: str, shape: Sequence[int]) -> None:
    """Warn about an image (..., C, H, W) that looks like (..., H, W, C)."""
    if torch.compiler.is_compiling():  # a comparison would bind a dynamic size
        return
    if looks_channels_last(shape) and not _state.looked:
        text = f"{function}: `{argument}` of shape {tuple(shape)} is read as (..., C, H, W), and "
        warn(text + "looks like (..., H, W, C): image.movedim(-1, -3) makes one of the other")


def warn_if_16_bits(
    function: str, argument: str, values: Tensor, size: Sequence[int], of: str = "image"
) -> None:
    """Warn about positions in 16 bits, if these lack whole pixels of images of `size` (H, W).

    of: what has these positions; an array's size is (length,).
    """
    whole = WHOLE.get(values.dtype)
    if whole is None or torch.compiler.is_compiling() or _state.looked or max(size) <= whole + 1:
        return
    kind = str(values.dtype).removeprefix("torch.")
    text = (
        f"{function}: `{argument}` of {kind} holds every whole pixel only up to {whole}, and the "
    )
    warn(text + f"{of} is of {tuple(size)}: positions are rounded. float32 holds them")


def warn_if_16_bit_numbers(
    function: str, argument: str, values: object, sizes: Sequence[Sequence[int]]
) -> bool:
    """The same for a matrix or boxes, unless all numbers are whole ones that the type holds.

    sizes: of several images, of which the largest counts. Returns whether it has looked further
    than at the type.
    """
    if not isinstance(values, Tensor) or values.dtype not in WHOLE:
        return False
    if torch.compiler.is_compiling():  # a comparison would bind a dynamic size
        return False
    size = max(sizes, key=max)
    if max(size) <= WHOLE[values.dtype] + 1:
        return False
    if _is_readable(values):
        numbers = values.detach().float()
        if bool(((numbers % 1 == 0) & (numbers.abs() <= WHOLE[values.dtype])).all()):
            return True
    warn_if_16_bits(function, argument, values, size)
    return True


def warn_if_16_bit_camera(function: str, size: Sequence[int], **values: object) -> None:
    """Warn about numbers of cameras in 16 bits, if rounding them moves an image's pixels.

    values: camera matrices, coefficients, rotations, poses, as they were given; None is none. Not
    about whole and half numbers so small that others were rounded to fractions, such as an
    identity's.
    """
    if torch.compiler.is_compiling() or _state.looked:
        return
    for argument, value in values.items():
        kind = str(getattr(value, "dtype", None)).removeprefix("torch.")
        dtype = {"float16": torch.float16, "bfloat16": torch.bfloat16}.get(kind)
        if dtype is None or max(size) <= WHOLE[dtype] // 2 + 1:
            continue
        plain = isinstance(value, Tensor)
        numbers = value if plain else torch.as_tensor(value, device="cpu")
        if is_eager(numbers) and numbers.device.type == "cpu":
            doubled = 2 * numbers.detach().double()
            if bool(((doubled % 1 == 0) & (doubled.abs() <= WHOLE[dtype] / 16)).all()):
                continue
        error = torch.finfo(dtype).eps / 2 * max(size)
        text = f"{function}: `{argument}` of {kind} has too few digits for an image of "
        text += f"{tuple(size)}: it may be rounded by the equivalent of {error:.1g} pixels. "
        warn(text + "float32 holds it")


def warn_if_no_output(function: str, argument: str, value: object) -> None:
    """Warn about a number or a tuple in the place of one of cv2's output arrays."""
    if value == () or _state.looked:
        return
    text = (
        f"{function}: `{argument}` is the output array, and {value!r} in its place is ignored, as "
    )
    warn(text + "in cv2: what comes after it needs its name, such as interpolation= or flags=")


def warn_if_not_2_to_1(function: str, argument: str, size: Sequence[int]) -> None:
    """Warn about an equirectangular picture of `size` (H, W) that is not twice as wide as high."""
    if torch.compiler.is_compiling() or _state.looked or min(size) < LEAST_IMAGE:
        return
    height, width = size
    if abs(width - 2 * height) > MOST_STRETCH * width:
        text = (
            f"{function}: `{argument}` of {height} x {width} pixels is stretched over the sphere, "
        )
        text += (
            "360 degrees wide and 180 high: such pictures are twice as wide as high. Of a part of "
        )
        warn(text + "the sphere, pad the rest (torch.nn.functional.pad)")


def warn_if_no_pixels(function: str, points: Tensor, size: Sequence[int]) -> None:
    """Warn about a point field (..., h, w, 2) that is in no pixels of an image of `size` (H, W).

    In F.grid_sample's [-1, 1]; offsets from each pixel; or of a type that cannot hold the pixels.
    """
    if torch.compiler.is_compiling():  # a comparison would bind a dynamic size
        return
    warn_if_16_bits(function, "points", points, size)
    if points.numel() < 2 * LEAST_POINTS or not _is_readable(points):
        return
    values = points.detach()
    # in pixels, the last point of a field is seldom near the image's first pixel
    last = abs(values[(-1,) * values.ndim].item())
    if min(size) < LEAST_IMAGE or not last <= max(1, size[0] * MOST_OFFSET):
        return
    if tuple(values.shape[-3:-1]) == tuple(size) and _is_of_offsets(values):
        text = f"{function}: all `points` lie near the first pixel, as the offsets (dx, dy) of a "
        text += "flow do: they are positions (x, y) here. relative=True takes offsets, and so does "
        warn(text + "warp_flow")
        return
    if last > 1:
        return
    low, high = (end.item() for end in values.aminmax())
    if -1 <= low < 0 < high <= 1:
        text = f"{function}: all `points` lie within [-1, 1], the first pixel of an image of "
        text += f"{tuple(size)}: they are (x, y) in pixels here. A grid of F.grid_sample with "
        text += "align_corners=False is ((x + 1) * W - 1) / 2, ((y + 1) * H - 1) / 2 in pixels"
        warn(text)


def _is_of_offsets(values: Tensor) -> bool:
    """Whether a field (..., h, w, 2), of the image's size, has offsets in place of points.

    All are short; and most, as points, lie before the first pixel, or all lie in a small part of
    the image and do not run over it from left to right and top to bottom, as enlarged parts do.
    """
    first = values[(0,) * (values.ndim - 3)].double()
    height, width = first.shape[:2]
    low, high = first.amin((0, 1)), first.amax((0, 1))
    ends = first.new_tensor((width, height))
    short = bool((torch.maximum(low.abs(), high.abs()) <= MOST_OFFSET * ends).all())
    if not short or not bool((high - low > 0).any() or (low != 0).any()):  # zeros are anything
        return False
    if _is_grid(first, first[:: height - 1, :: width - 1].tolist()):
        return False
    if (first < -0.5).any(-1).double().mean().item() > SHARE_OUTSIDE:
        return True
    runs = first[-1, -1] - first[0, 0]
    enlarged = bool((runs >= 0.8 * (high - low)).all()) and bool((runs > 0).all())
    return bool((high - low <= ends * MOST_OFFSET / 2).all()) and not enlarged


def warn_if_points(
    function: str, flow: Tensor, size: Sequence[int] | None = None, argument: str = "flow"
) -> bool:
    """Warn about a flow (..., h, w, 2) that is a point field, in [-1, 1] or in pixels.

    Small offsets are common, so only two fields cause a warning: a ramp from one end of [-1, 1] to
    the other, and one over the pixels of the image, which as offsets would leave the image nearly
    everywhere. size: (H, W) of that image; None: the field's. Returns whether it has warned.
    """
    height, width = flow.shape[-3:-1]
    if min(height, width) < LEAST_IMAGE or not _is_readable(flow):
        return False
    values = flow.detach()
    # as numbers: a dozen tensor operations take as long as warping a small image
    corners = values[(0,) * (values.ndim - 3)][:: height - 1, :: width - 1].tolist()
    if _is_grid(values, corners):
        text = f"{function}: `{argument}` runs from -1 to 1 over {height} x {width} pixels, as a "
        text += "grid of F.grid_sample does: it is the offset (dx, dy) of every pixel, in pixels, "
        warn(text + "here")
        return True
    if _is_of_points(values, corners, (height, width) if size is None else size):
        text = f"{function}: `{argument}` runs over the pixels from first to last, as a field of "
        text += "points does, and leads off the image nearly everywhere: it is the offset (dx, dy) "
        warn(text + "of every pixel here. flow.from_points makes one of points")
        return True
    return False


def _is_grid(values: Tensor, corners: list[Any]) -> bool:
    """Whether a field (..., h, w, 2) with these corners, 2 x 2 x 2, is a grid of F.grid_sample."""
    height, width = values.shape[-3:-1]
    for first, last, length in zip(corners[0][0], corners[1][1], (width, height), strict=True):
        if not (-1 <= first <= 2 / length - 1 and 1 - 2 / length <= last <= 1):
            return False
    low, high = (end.item() for end in values.aminmax())
    return low >= -1 and high <= 1


def _is_of_points(values: Tensor, corners: list[Any], size: Sequence[int]) -> bool:
    """Whether a field (..., h, w, 2) with these corners, 2 x 2 x 2, is one of points of an image.

    Each corner lies within a quarter of the sides from its own pixel, and most of the first item's
    offsets leave the image. The only warps with both properties shrink an image to half about its
    first pixel, on a canvas of the same size.
    """
    height, width = values.shape[-3:-1]
    for i, j in product((0, 1), (0, 1)):
        x, y = corners[i][j]
        if not (abs(x - j * (width - 1)) <= width / 4 and abs(y - i * (height - 1)) <= height / 4):
            return False
    places = values[(0,) * (values.ndim - 3)].double() + _pixels(height, width)
    ends = places.new_tensor((size[1], size[0])) - 0.5
    off = ((places < -0.5) | (places > ends)).any(-1)
    return off.double().mean().item() > SHARE_OUTSIDE


def _pixels(height: int, width: int) -> Tensor:
    """The (x, y) of every pixel, (h, w, 2)."""
    lines = (torch.arange(n, device="cpu") for n in (width, height))
    return torch.stack(torch.meshgrid(*lines, indexing="xy"), -1)


def warn_if_levels(function: str, **largest: float) -> None:
    """Warn about numbers for images in [0, 1] that only make sense in levels of 255."""
    names = [f"`{argument}`" for argument, number in largest.items() if number > 1]
    if names:
        text = (
            f"{function}: {' and '.join(names)} above 1 leaves nothing of an image in [0, 1], as "
        )
        warn(text + "images are here (divide by 255 what is meant for 0 to 255)")


def warn_if_relative_camera(
    function: str, argument: str, numbers: Sequence[Tensor], size: Sequence[int]
) -> None:
    """Warn about a camera's fx, fy, cx and cy, each (...), relative to the sides of an image."""
    if not _is_readable(*numbers) or numbers[0].numel() == 0:
        return
    if min(size) < LEAST_IMAGE or not numbers[0].detach().amax().item() <= MOST_SHARE:
        return
    fx, fy, cx, cy = (value.detach() for value in numbers)
    near = (fx > 0) & (fx <= MOST_SHARE) & (fy > 0) & (fy <= MOST_SHARE)
    if bool((near & (cx > 0) & (cx < 1) & (cy > 0) & (cy < 1)).all()):  # not the identity's 0
        text = f"{function}: `{argument}` has its centre within the first pixel of an image of "
        text += f"{tuple(size)}, and focal lengths of {MOST_SHARE:g} pixels at most: they are "
        text += "pixels here. Shares of the sides times W and H, less half a pixel in the centre, "
        warn(text + "are")


def warn_if_relative_boxes(
    function: str, boxes: Tensor, size: Sequence[int], argument: str = "boxes"
) -> None:
    """Warn about boxes (..., 4) relative to the images' sides instead of pixels."""
    if boxes.numel() == 0 or min(size) < LEAST_IMAGE or not _is_readable(boxes):
        return
    if not boxes.detach().amax().item() <= 1:
        return
    values = boxes.detach()
    if values.amin().item() >= 0 and bool((values % 1 != 0).any()):  # whole: the first pixel
        one = argument == "box"
        text = f"{function}: `{argument}` lies within [0, 1], the first pixel of an image of "
        if not one:
            text = f"{function}: all `{argument}` lie within [0, 1], the first pixel of images of "
        text += f"{tuple(size)}: {'it is in' if one else 'they are'} pixels here. Shares of the "
        warn(text + "sides times (W, H, W, H) are")


def warn_if_rois(function: str, boxes: Tensor, index: Tensor) -> None:
    """Warn about boxes (N, 5) that are torchvision's RoIs: the image's index (N,), then corners."""
    if boxes.numel() == 0 or not (_is_readable(boxes) and _is_readable(index)):
        return
    first, x1, y1, x2, y2 = boxes.detach().unbind(-1)
    if bool((first == index).all()) and bool(((x2 > x1) & (y2 > y1)).all()):
        text = f"{function}: the first column of `boxes` (N, 5) is `image_index`, as in "
        text += (
            "torchvision's (index, x1, y1, x2, y2): boxes (N, 5) are (cx, cy, w, h, angle) here; "
        )
        warn(text + "boxes[:, 1:] are (x1, y1, x2, y2)")


def warn_if_relative_points(
    function: str, source: Tensor, target: Tensor, size: Sequence[int]
) -> None:
    """Warn about pairs of points (..., N, 2) relative to `size`, or in [-1, 1], not in pixels."""
    if min(source.numel(), target.numel()) == 0 or min(size) < LEAST_IMAGE:
        return
    if not (_is_readable(source) and _is_readable(target)):
        return
    ends = [end.item() for points in (source, target) for end in points.detach().aminmax()]
    if min(ends) >= -1 and max(ends) <= 1:
        low = 0 if min(ends) >= 0 else -1
        text = f"{function}: all points of `source` and `target` lie within [{low}, 1], the first "
        text += f"pixel of an image of {tuple(size)}: they are (x, y) in pixels here. "
        pixels = "x * W - 1 / 2, y * H - 1 / 2"
        if low:
            pixels = "((x + 1) * W - 1) / 2, ((y + 1) * H - 1) / 2"
        warn(text + f"Shares of the sides, from edge to edge, are {pixels} in pixels")
