"""Maps of lenses and of other kinds by the native library, from arrays and tensors of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import pi
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.core.lasting import lasting
from warpkit.engine.arithmetic import opencv_polar
from warpkit.engine.binding.plan import Plan
from warpkit.engine.definitions import lens_models
from warpkit.engine.definitions.lens_models import COUNTS
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.opencv import door, numbers, sampling
from warpkit.opencv.layout import planes
from warpkit.opencv.point_lists import MATRIX, TILT, count_of, lens_numbers

Maps = tuple[np.ndarray, np.ndarray | None]


def has_kernel(*values: Any) -> bool:
    """Whether the library reads such numbers: those of arrays, and of tensors on no tape."""
    return door.has_library() and door.is_plain(*values)


def lens_plan(model: str, k: Any, size: tuple[int, int], kind: str) -> Callable[..., Maps]:
    """Makes maps of a kind, as `plain_calls.lens_map` does, for lenses with as many coefficients.

    Its arrays: camera (3, 3); k, None or coefficients; turn, None or a rotation before the view,
    (3, 3); view (3, 3) or (3, 4), None for the camera's with its principal point in the centre.
    """
    from warpkit.engine.cpu.inverse import invert_numbers
    from warpkit.engine.cpu.maps import filled, lens_block

    count = count_of(k)
    block = lens_block(model, count or COUNTS[model][0], size, kind)

    def run(camera: Any, k: Any, turn: Any, view: Any) -> Maps:
        numbers = lens_numbers(camera, k, count)
        if count == lens_models.TILTED:
            angles = torch.from_numpy(numbers[16:18]).unbind()
            numbers[TILT] = lens_models.tilt_by(*angles).flatten().numpy()
        if view is None:
            fx, fy = numbers[:2]
            rows = (fx, 0.0, (size[1] - 1) / 2), (0.0, fy, (size[0] - 1) / 2), (0.0, 0.0, 1.0)
            matrix = np.array(rows)
        else:
            matrix = np.array(door.as_array(view)[:, :3], np.float64)
        if turn is not None:  # torch's product: numpy's may round differently
            turned = torch.from_numpy(np.array(door.as_array(turn), np.float64))
            matrix = (torch.from_numpy(matrix) @ turned).numpy()
        numbers[MATRIX] = invert_numbers(matrix).ravel()
        return filled(block, numbers, size, kind)

    return run


def image_plan(model: str, src: Any, k: Any, size: tuple[int, int], rule: SamplingRule) -> Plan:
    """The plan of undistorting images like src, (H, W) or (H, W, C), to a size.

    Its other arrays are those of `lens_plan` without a turn.
    """
    maps = np.empty((*size, 2), np.int16), np.empty(size, np.int16)
    pixels, parts = map(torch.from_numpy, maps)
    sample = sampling.sampler((src, *maps), planes(src), pixels, parts, size, rule, 0)
    make = lens_plan(model, k, size, "fixed")

    def run(src: Any, camera: Any, k: Any, view: Any) -> np.ndarray:
        return sample(src, *make(camera, k, None, camera if view is None else view))

    return run


def conversion_plan(first: Tensor, second: Tensor | None, kind: str) -> Plan:
    """The plan of converting maps (h, w) or (h, w, 2) to a kind; second (h, w), None if unread."""
    from warpkit.engine.cpu.maps import conversion_block, filled

    size, none, reads = tuple(first.shape[:2]), np.empty(0), second is not None
    block = conversion_block(first.detach().numpy(), reads, kind)

    def run(first: Any, second: Any) -> Maps:
        """first (h, w) or (h, w, 2); second (h, w) or None."""
        parts = door.as_array(second) if reads else None
        return filled(block, none, size, kind, door.as_array(first), parts)

    return run


def polar_plan(src: Any, size: tuple[int, int], rule: SamplingRule, log: bool, back: bool) -> Plan:
    """The plan of `warpPolar` of pictures like src, (H, W) or (H, W, C), to a size.

    Its other arrays: the centre's x and y, the radius, and the output.
    """
    polar = (src.shape[0], src.shape[1])
    join = torch.cat if isinstance(src, Tensor) else np.concatenate

    def framed(src: Any) -> Any:
        """With the last row also on top, and the first one below, as angles continue."""
        return join((src[-1:], src, src[:1])) if back else src

    picture, points = framed(src), np.empty((*size, 2), np.float32)
    read = (picture, points, None)
    sample = sampling.sampler(read, planes(picture), torch.from_numpy(points), None, size, rule, 0)

    def run(src: Any, x: float, y: float, radius: float, dst: Any) -> np.ndarray:
        return sample(framed(src), polar_points(size, polar, (x, y), radius, log, back))

    return run


def polar_points(
    size: tuple[int, int],
    polar: tuple[int, int],
    center: Sequence[float],
    radius: float,
    log: bool,
    back: bool,
) -> np.ndarray:
    """The source positions of `warpPolar`, (h, w, 2), float32.

    back: from a polar picture of the size `polar` with one more row on top; not with `log`.
    """
    from warpkit.engine.cpu.maps import map_from_polar, polar_map

    middle = np.array(numbers.single(center))
    if back:
        return map_from_polar(size, polar[0], middle, radius / polar[1], 2 * pi / polar[0])
    return polar_map(middle, *_rings(size, radius, log))


@lru_cache(maxsize=16)
@lasting
def _rings(size: tuple[int, int], radius: float, log: bool) -> tuple[np.ndarray, ...]:
    """The cosines and sines (h,) of the rows' angles, and the columns' distances (w,)."""
    reach = torch.tensor(radius, dtype=torch.float64, device="cpu")
    rho, angles = opencv_polar.rings(size, reach, log)
    parts = angles.cos()[:, 0], angles.sin()[:, 0], rho.float().double()
    return tuple(part.numpy() for part in parts)
