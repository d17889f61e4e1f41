"""The twin: a program of our own with the same numbers as the identified one, and gradients."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from warpkit import attacks
from warpkit.attacks.pipeline_steps import Step
from warpkit.validation.programs.arithmetic import Resampling, resample, smooth
from warpkit.validation.programs.geometry import Geometry, Placement
from warpkit.validation.programs.jpeg import Jpeg, through_file
from warpkit.validation.programs.pictures import Picture
from warpkit.validation.programs.values import Values


@dataclass(frozen=True)
class Twin:
    """Geometry, resize and values. Levels are 0..255, whatever numbers the program returns."""

    geometry: Geometry
    resampling: Resampling | None
    """None if nothing is resized."""
    values: Values
    padding: tuple[float, ...] = (0.0,)
    """One level for each channel."""
    jpeg: Jpeg | None = None
    """The file that is written and read before everything else."""

    def levels(self, picture: Picture) -> Tensor:
        """The program's result in levels, (C, h, w) float64, for a picture (H, W, 3) uint8."""
        placement = self.geometry.placement(*picture.shape[:2])
        image = torch.from_numpy(picture).movedim(-1, 0)
        return self.levels_at(through_file(image[None], self.jpeg)[0], placement)

    def levels_at(self, image: Tensor, placement: Placement) -> Tensor:
        """The same without the file, for an RGB image (C, H, W) uint8 with a given placement."""
        values = self.values
        if not values.is_gray:
            resized = self._resized(values.reorder(image).contiguous(), placement)
        elif values.gray_first:
            resized = self._resized(values.gray(values.reorder(image)), placement)
        else:
            resized = self._resized(values.reorder(image).contiguous(), placement)
            if values.sum != "floats" and resized.dtype != torch.uint8:
                resized = resized.clamp(0, 255).round().to(torch.uint8)
            resized = values.gray(resized)
        return to_window(resized.double(), placement, self.padding)

    def numbers(self, images: Tensor) -> Tensor:
        """The program's numbers (N, C, h, w) for images (N, 3, H, W) uint8."""
        placement = self.geometry.placement(*images.shape[-2:])
        decoded = through_file(images.cpu(), self.jpeg)
        levels = torch.stack([self.levels_at(image, placement) for image in decoded])
        return self.values.as_numbers(levels).float().to(images.device)

    def surrogate(self, images: Tensor) -> Tensor:
        """The same without rounding, for floats (N, 3, H, W) in [0, 1]; the gradient is computed
        from it."""
        placement = self.geometry.placement(*images.shape[-2:])
        levels = self.values.reorder(through_file(images, self.jpeg) * 255)
        if self.values.is_gray:
            levels = self.values.gray_floats(levels)
        levels, placement = _cut(levels, placement, self.padding)
        if self.resampling is not None and placement.size != tuple(levels.shape[-2:]):
            levels = smooth(levels.contiguous(), placement, self.resampling)
        levels = to_window(levels, placement, self.padding)
        return self.values.as_numbers(levels)

    def pipeline(self) -> attacks.Pipeline:
        """The program with gradients, on images (N, 3, H, W) in [0, 1]."""
        return attacks.Pipeline(Step(self.numbers, "uint8", self.surrogate, self.steps()))

    def steps(self) -> str:
        """Its steps in a few words."""
        g, how, values = self.geometry, self.resampling, self.values
        parts = [] if self.jpeg is None else [str(self.jpeg)]
        parts += [f"{g.before[0]} {g.before[1]}"] if g.before is not None else []
        parts += [] if how is None else [f"resize to {g.rule} {g.size} by {how}"]
        parts += [] if g.window is None else [f"window {g.window[0]} x {g.window[1]}"]
        parts += [] if values.channels == "kept" else [f"channels {values.channels}"]
        numbers = ", ".join(f"{v:.6g}" for v in (values.gain[0], values.offset[0]))
        return "; ".join([*parts, f"gain, offset {numbers}"])

    def _resized(self, image: Tensor, placement: Placement) -> Tensor:
        """(C, H, W) levels -> (C, h, w)."""
        image, placement = _cut(image, placement, self.padding)
        if self.resampling is None:
            return image
        if placement.cut is None and placement.size == tuple(image.shape[-2:]):
            return image
        return resample(image.contiguous(), placement, self.resampling)


def place_without_resize(image: Tensor, placement: Placement) -> Tensor:
    """Images (..., C, H, W), cut or padded with 0 before and after a resize that changes
    nothing."""
    cut, left = _cut(image, placement, (0.0,))
    return to_window(cut, left, (0.0,))


def _cut(
    image: Tensor, placement: Placement, padding: tuple[float, ...]
) -> tuple[Tensor, Placement]:
    """(..., C, H, W) padded to a square or cropped to whole pixels, and the remaining placement."""
    height, width = image.shape[-2:]
    if placement.padded is not None:
        rows, columns, top, left = placement.padded
        whole = _canvas(image, (rows, columns), padding)
        whole[..., top : top + height, left : left + width] = image
        return whole, placement
    cut = placement.cut
    if cut is None:
        return image, placement
    x1, y1, x2, y2 = cut
    if x2 - x1 == width and y2 - y1 == height:
        return image, placement._replace(cut=None)
    if placement.is_box:
        return image, placement
    return image[..., int(y1) : int(y2), int(x1) : int(x2)], placement._replace(cut=None)


def _canvas(image: Tensor, size: tuple[int, int], padding: tuple[float, ...]) -> Tensor:
    """The padding (..., C, h, w) for images (..., C, H, W), in their type."""
    level = torch.tensor(padding, dtype=torch.float64, device=image.device).to(image.dtype)
    channels = max(image.shape[-3], len(padding))
    return level[:, None, None].expand(*image.shape[:-3], channels, *size).clone()


def to_window(levels: Tensor, placement: Placement, padding: tuple[float, ...]) -> Tensor:
    """Crop a resized picture (..., C, h, w) to the window, or pad it."""
    (h, w), (rows, columns), (top, left) = placement.size, placement.window, placement.corner
    if (top, left) == (0, 0) and (h, w) == (rows, columns):
        return levels
    y, x = max(top, 0), max(left, 0)
    down, right = max(-top, 0), max(-left, 0)
    inner = levels[..., y : y + rows - down, x : x + columns - right]
    result = _canvas(levels, (rows, columns), padding)
    result[..., down : down + inner.shape[-2], right : right + inner.shape[-1]] = inner
    return result
