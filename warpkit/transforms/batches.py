"""Runs that draw anew for every image of a batch."""

from __future__ import annotations

from typing import Any

import PIL.Image
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

from warpkit.core import checks
from warpkit.transforms.composed import ComposedMap, is_whole
from warpkit.transforms.exact import CenterCrop
from warpkit.transforms.images import has_pixels, retype, through
from warpkit.transforms.labels import LABELS, move_keypoints
from warpkit.transforms.resized import Resize
from warpkit.transforms.runs import Run
from warpkit.transforms.sampling import sample_each

LEAST_DIMS = (
    (tv_tensors.Video, 5, "(B, T, C, H, W)"),
    (tv_tensors.Mask, 3, "(B, H, W) or (B, N, H, W)"),
)
"""Of a batch; an image has (B, C, H, W)."""


class BatchRun(Run):
    """A `Run` of batches: draws for one image after another, and maps in one call."""

    composes_one = True

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """{"draws": for each image, the draws of each transform}."""
        batch = {batch_of(inpt) for inpt in flat_inputs}
        if len(batch) > 1:
            checks.fail("Fused", "inpt", "of one batch with per_image=True", sorted(batch))
        sizes = self.sizes_of(flat_inputs)
        draws = [self.draw(sizes) for _ in range(batch.pop() if batch else 0)]
        return {"draws": draws, "composed": {}}

    def maps(self, params: dict[str, Any], size: tuple[int, int]) -> list[ComposedMap]:
        """The map of each image of a batch of `size` (H, W)."""
        maps_of = params.setdefault("composed", {})
        if size not in maps_of:
            maps_of[size] = [self.composed({"draws": draws}, size) for draws in params["draws"]]
            sizes = {composed.size for composed in maps_of[size]}
            if len(sizes) > 1:
                wanted = "of transforms that give every image of a batch one size with "
                wanted += "per_image=True (add a Resize after an expand=True)"
                checks.fail("Fused", "transforms", wanted, sorted(sizes))
        return maps_of[size]

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One batch under the drawn `params`."""
        batch, count = batch_of(inpt), len(params["draws"])
        if batch != count:
            checks.fail("Fused", "inpt", f"of the batch of {count} that was drawn for", batch)
        if all(draw is None for draws in params["draws"] for draw in draws):
            return inpt
        if all(
            isinstance(transform, (Resize, CenterCrop, v2.Pad)) for transform in self.transforms
        ):
            return super().transform(inpt, {"draws": params["draws"][0]})  # the same for all
        height, width = v2.functional.get_size(inpt)
        maps = self.maps(params, (height, width))
        if not has_pixels(inpt):
            pieces = []
            for points, draws, composed in zip(inpt.unbind(), params["draws"], maps, strict=True):
                offsets = self.offsets(self.steps(draws, (height, width)))
                pieces.append(move_keypoints(points, composed, offsets).as_subclass(Tensor))
            return retype(torch.stack(pieces), inpt, canvas_size=maps[0].size)
        for draws in params["draws"]:
            self.check_padding(self.steps(draws, (height, width)), type(inpt))
        options = self.options(inpt)

        def sampled(image: Tensor, interpolation: str) -> Tensor:
            flat = image.ndim == 3  # masks of one plane each
            images = image[:, None] if flat else image
            result = sample_each(images, maps, options._replace(interpolation=interpolation))
            return result[:, 0] if flat else result

        moves = all(is_whole(each.mapping) for each in maps)
        if not moves:
            self.warn_of_arithmetic(inpt)
        interpolation = "nearest" if moves else options.interpolation
        return through("Fused", inpt, interpolation, sampled, maps[0].size)


def batch_of(inpt: Any) -> int:
    """The batch size B of an input that can be drawn image by image."""
    if isinstance(inpt, PIL.Image.Image) or (not has_pixels(inpt) and not isinstance(inpt, LABELS)):
        checks.fail("Fused", "inpt", "a tensor with per_image=True", type(inpt).__name__, TypeError)
    if isinstance(inpt, tv_tensors.BoundingBoxes):
        wanted = "without boxes with per_image=True: torchvision's belong to one image (for "
        wanted += "each image, Fused.map(params, size) returns the map to move them by)"
        checks.fail("Fused", "inpt", wanted, f"BoundingBoxes of shape {checks.shape_of(inpt)}")
    dims, shape = 4, "(B, C, H, W)"
    if not has_pixels(inpt):
        dims, shape = 2, "(B, ..., 2)"
    for kind, kind_dims, kind_shape in LEAST_DIMS:
        dims, shape = (kind_dims, kind_shape) if isinstance(inpt, kind) else (dims, shape)
    if inpt.ndim < dims:
        got = f"{type(inpt).__name__} of shape {checks.shape_of(inpt)}"
        checks.fail("Fused", "inpt", f"of shape {shape} with per_image=True", got)
    return inpt.shape[0]
