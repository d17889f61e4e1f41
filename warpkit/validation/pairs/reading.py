"""Reads images and results as arrays: from arrays, tensors, PIL images and files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from warpkit.core import checks
from warpkit.core.environment import import_optional
from warpkit.validation.pairs.jpeg import Tables, tables_of
from warpkit.validation.pairs.matching import Matched, is_file
from warpkit.validation.programs.pictures import Picture
from warpkit.validation.programs.program import NotKnownError, layout_of

Levels = NDArray[np.float64]

COLOURED = 0.5
"""Levels: a picture whose channels differ by less on average is gray."""

ORIENTATION = 0x0112
"""The EXIF tag that says how the camera was held."""


class UnreadableError(Exception):
    """A picture cannot be read; the text says why."""


@dataclass(frozen=True)
class Result:
    """The result for one picture."""

    numbers: Levels
    """(C, h, w)."""
    tables: Tables | None
    """The tables of a JPEG file."""


@dataclass
class PicturePair:
    """A picture and its result."""

    index: int
    """The picture's index in the caller's list."""
    picture: Picture
    """(H, W, 3) uint8."""
    turned: Picture | None
    """The picture in its EXIF orientation, if it has one."""
    result: Result

    @cached_property
    def coloured(self) -> bool:
        """Whether the picture's channels differ."""
        wide = self.picture.astype(np.float32)
        return bool(np.abs(wide - wide.mean(-1, keepdims=True)).mean() > COLOURED)

    @property
    def shape(self) -> tuple[int, int]:
        """(H, W) of the picture."""
        return self.picture.shape[0], self.picture.shape[1]

    @property
    def cost(self) -> int:
        """The number of pixels to read and to write."""
        height, width = self.shape
        return height * width + 2 * self.result.numbers.size


@dataclass
class Collection:
    """All pairs that can be read, and the common properties of their results."""

    pairs: list[PicturePair]
    layout: str
    batched: bool
    dtype: str
    left_out: list[str]


def collect(
    name: str,
    images: Sequence[Any],
    results: Sequence[Any],
    matched: Matched,
    advance: Callable[[str], None],
) -> Collection:
    """Read all pairs. Raises ValueError if none can be read."""
    pairs, left_out = [], list(matched.left_out)
    kinds: list[tuple[NDArray[Any], Tables | None, int, Picture, Picture | None]] = []
    for at, to in matched.pairs:
        try:
            picture, turned = _original(name, images[at], f"images[{at}]")
            array, tables = _result(name, results[to], f"results[{to}]")
        except UnreadableError as error:
            left_out.append(str(error))
            continue
        finally:
            advance("read")
        kinds.append((array, tables, at, picture, turned))
    if not kinds:
        listed = "; ".join(left_out[:3]) or "none"
        checks.fail(name, "images", "at least one pair that can be read", listed)
    layout, batched, dtype = _common(name, [array for array, *_ in kinds])
    for array, tables, at, picture, turned in kinds:
        numbers = _planes(array[0] if batched else array, layout)
        pairs.append(PicturePair(at, picture, turned, Result(numbers, tables)))
    return Collection(pairs, layout, batched, dtype, left_out)


def _common(name: str, arrays: Sequence[NDArray[Any]]) -> tuple[str, bool, str]:
    """Layout, batch and type that all results have in common."""
    first = arrays[0]
    for k, array in enumerate(arrays):
        if array.dtype != first.dtype or (array.ndim == 4) != (first.ndim == 4):
            wanted = f"of one type and one number of axes ({first.dtype}, {first.ndim})"
            checks.fail(name, "results", wanted, f"{array.dtype}, {array.ndim} in pair {k}")
    batched = first.ndim == 4
    arrays = [array[0] if batched else array for array in arrays]
    wide = next((array for array in arrays if array.ndim == 3), arrays[0])
    try:
        layout = layout_of(wide.shape)
    except NotKnownError:
        checks.fail(name, "results", "with an axis of 1 or 3 channels", wide.shape)
    channels = {_planes(array, layout).shape[0] for array in arrays}
    if len(channels) > 1:
        checks.fail(name, "results", "of one number of channels", sorted(channels))
    return layout, batched, str(first.dtype)


def _planes(array: NDArray[Any], layout: str) -> Levels:
    """Numbers (C, h, w); a gray file among coloured ones is repeated three times."""
    array = array.astype(np.float64)
    if array.ndim == 2:
        return np.stack([array] * 3) if layout == "HWC" else array[None]
    return np.moveaxis(array, -1, 0) if layout == "HWC" else array


def _original(name: str, item: Any, argument: str) -> tuple[Picture, Picture | None]:
    """A picture (H, W, 3), and the picture in its EXIF orientation."""
    if _is_pil(item):
        return _open(item, argument, _both_ways)
    if is_file(item):
        return _from_file(name, item, _both_ways)
    array = _array(name, item, argument)
    wanted = "(H, W, 3) or (H, W), an array of uint8, or a tensor (3, H, W)"
    if array.dtype != np.uint8:
        checks.fail(name, argument, f"of shape {wanted}", array.dtype, TypeError)
    if array.ndim == 3 and array.shape[0] in (1, 3) and array.shape[2] not in (1, 3):
        array = np.moveaxis(array, 0, -1)
    if array.ndim == 2:
        array = array[..., None]
    if array.ndim != 3 or array.shape[2] not in (1, 3) or not array.size:
        checks.fail(name, argument, f"of shape {wanted}", array.shape)
    return np.array(np.broadcast_to(array, (*array.shape[:2], 3))), None


def _result(name: str, item: Any, argument: str) -> tuple[NDArray[Any], Tables | None]:
    """A result as it is, and its tables if it is a JPEG file."""
    if _is_pil(item):
        return _open(item, argument, _with_tables)
    if is_file(item):
        return _from_file(name, item, _with_tables)
    array = _array(name, item, argument)
    if array.dtype.kind not in "uif" or array.ndim not in (2, 3, 4) or not array.size:
        wanted = "numbers of two to four axes"
        checks.fail(name, argument, wanted, f"{array.dtype} of shape {array.shape}")
    if array.ndim == 4 and len(array) != 1:
        checks.fail(name, argument, "one result", f"a batch of {len(array)}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        checks.fail(name, argument, "finite numbers", "some that are not")
    return array, None


def _array(name: str, item: Any, argument: str) -> NDArray[Any]:
    if isinstance(item, Tensor):
        item = item.detach().cpu()
        return (item.float() if item.dtype == torch.bfloat16 else item).numpy()
    if isinstance(item, np.ndarray):
        return item
    wanted = "an array, a tensor, a PIL image or a file"
    checks.fail(name, argument, wanted, checks.kind_of(item), TypeError)


def _is_pil(item: object) -> bool:
    return hasattr(item, "convert") and hasattr(item, "getbands")


def _from_file(name: str, path: Any, read: Callable[[Any], Any]) -> Any:
    pillow = import_optional("PIL.Image", name, "reading files")
    try:
        file = pillow.open(Path(path))
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else "not an image"
        raise UnreadableError(f"{path} ({reason})") from None
    with file:
        return _open(file, str(path), read)


def _open(image: Any, label: str, read: Callable[[Any], Any]) -> Any:
    """Applies `read` to a PIL image; a broken file can raise nearly any error in Pillow."""
    try:
        image.load()
        if image.mode not in ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr"):
            raise UnreadableError(f"{label} (mode {image.mode}: no 8 bits a channel)")
        return read(image)
    except (UnreadableError, MemoryError):
        raise
    except Exception as error:
        raise UnreadableError(f"{label} ({' '.join(str(error).split())})") from None


def _both_ways(image: Any) -> tuple[Picture, Picture | None]:
    from PIL import ImageOps

    upright = np.array(image.convert("RGB"))
    if image.getexif().get(ORIENTATION, 1) in range(2, 9):
        return upright, np.array(ImageOps.exif_transpose(image).convert("RGB"))
    return upright, None


def _with_tables(image: Any) -> tuple[NDArray[np.uint8], Tables | None]:
    gray = image.mode in ("1", "L", "LA")
    return np.array(image.convert("L" if gray else "RGB")), tables_of(image)
