"""Converts cv2's images, (H, W) or (H, W, C) arrays or tensors, to the core's layout and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.core.tracing import is_eager, wants_gradient
from warpkit.opencv.door import written


def device_of(src: Any) -> torch.device:
    """The device of the computation: arrays are on the CPU, whatever torch's default is."""
    return src.device if isinstance(src, Tensor) else torch.device("cpu")


def check_picture(
    name: str, argument: str, src: Any, types: tuple[torch.dtype, ...] | None, under: str = ""
) -> Any:
    """Validates an array or tensor (H, W) or (H, W, C) of one of the types; None: of any type.

    under: the reason for these types, for the message.
    """
    if not isinstance(src, (Tensor, np.ndarray)):
        checks.fail(name, argument, "a tensor or an array", type(src).__name__, TypeError)
    dtype = src.dtype if isinstance(src, Tensor) else checks.array_dtype(src)
    if types is not None and dtype not in types:
        wanted = f"of one of the types {checks.names_of(types)}{under}"
        checks.fail(name, argument, wanted, src.dtype, TypeError)
    if src.ndim not in (2, 3) or 0 in src.shape:
        checks.fail(name, argument, "of shape (H, W) or (H, W, C)", tuple(src.shape))
    if isinstance(src, Tensor):
        checks.check_dense(name, argument, src)
    return src


def planes(image: Any) -> Tensor:
    """(H, W) or (H, W, C) as a view (1, C, H, W), which is channels-last for the core."""
    if isinstance(image, np.ndarray):
        image = checks.from_array("warpkit.opencv", "src", image, torch.device("cpu"))
    if image.ndim == 2:
        return image[None, None]
    return image.permute(2, 0, 1)[None]


def shape_like(src: Any, size: tuple[int, int]) -> tuple[int, ...]:
    """The shape of src's results, (h, w) or (h, w, C): cv2 drops a single channel of arrays."""
    one = isinstance(src, np.ndarray) and src.shape[2:] == (1,)
    return size if one else (*size, *src.shape[2:])


def finish(src: Any, dst: Any, result: Tensor) -> Any:
    """Planes (1, C, h, w) in src's layout, as an array if src is one."""
    image = result[0, 0] if src.ndim == 2 else result[0].permute(1, 2, 0)
    if isinstance(src, Tensor):
        return image
    return _array(dst, np.ascontiguousarray(image.detach().numpy()))  # M may require a gradient


def as_picture(src: Any, *others: Tensor) -> np.ndarray | None:
    """An array or tensor (H, W) or (H, W, C) as an array (H, W, C), for kernels; no copy is made.

    None if the values are not in the CPU's memory, if a derivative of the image or of the `others`
    is wanted, or while torch traces.
    """
    if isinstance(src, Tensor):
        if src.device.type != "cpu" or is_followed(src, *others):
            return None
        array = (src.view(torch.int16) if src.dtype == torch.bfloat16 else src.detach()).numpy()
    else:
        if is_followed(*others):
            return None
        array = np.asarray(src)
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
    return whole(array)


def whole(array: np.ndarray) -> np.ndarray:
    """(H, W) or (H, W, C) as a view (H, W, C)."""
    return array if array.ndim == 3 else array[..., None]


def from_picture(src: Any, dst: Any, picture: np.ndarray) -> Any:
    """A picture (h, w, C) in src's layout, as a tensor if src is one."""
    image = picture[..., 0] if src.ndim == 2 else picture
    if not isinstance(src, Tensor):
        return _array(dst, image)
    tensor = torch.from_numpy(image)
    return tensor.view(src.dtype) if src.dtype == torch.bfloat16 else tensor


def _array(dst: Any, array: np.ndarray) -> np.ndarray:
    """The array in cv2's shape, or `dst` with the array's values."""
    if written(dst, array) is dst and dst is not None:
        return dst
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]  # cv2 returns (H, W) for (H, W, 1)
    return array


def is_followed(*tensors: Tensor) -> bool:
    """Whether any derivative is wanted: by autograd, forward mode or torch.func."""
    return wants_gradient(*tensors) or not is_eager(*tensors)


def has_tensor(*values: Any) -> bool:
    """Whether a tensor is among the arguments, so that one is returned."""
    return any(isinstance(value, Tensor) for value in values)
