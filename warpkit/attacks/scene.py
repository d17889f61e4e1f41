"""Images with one patch pasted on their boxes, as the attacked pipeline sees them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from warpkit.attacks.views import views
from warpkit.geometry import affine_matrix, box_to_matrix, compose, image_center
from warpkit.gradients import quantize as to_8_bits
from warpkit.patches import paste_patches


@dataclass(frozen=True)
class PatchScene:
    """Images (B, C, H, W) and the boxes (N, 4) of the images `index` (N,) that get the patch."""

    images: Tensor
    boxes: Tensor
    index: Tensor
    mask: Tensor | None
    patch_size: tuple[int, int]
    quantize: bool
    interpolation: str
    arithmetic: str

    def place(self, moves: Tensor) -> Tensor:
        """Patch pixel -> image pixel, (samples, N, rows, 3).

        moves (samples, N or 1, rows, 3), about the centre of the patch; they happen in the image,
        about the centre of each box.
        """
        boxes = self.boxes.double()
        middle = (boxes[:, :2] + boxes[:, 2:]) / 2 - 0.5
        to_box = middle - middle.new_tensor(image_center(self.patch_size))
        moves = moves.double().expand(-1, len(boxes), -1, -1)
        there, back = (affine_matrix(translation=by) for by in (to_box, -to_box))
        return compose(box_to_matrix(boxes, self.patch_size), back, moves, there)

    def render(self, patch: Tensor, matrices: Tensor) -> Tensor:
        """The images with the patch under matrices (n, N, rows, 3): (B * n, C, H, W)."""
        n = len(matrices)
        if self.quantize:
            patch = to_8_bits(patch)
        scenes = self.images.repeat_interleave(n, dim=0)
        # object by object, so that a later one covers an earlier one in each view
        index = (self.index[:, None] * n + torch.arange(n, device=self.index.device)).flatten()
        objects = matrices.movedim(0, 1).flatten(0, 1)
        paste = paste_patches if self.arithmetic == "exact" else self._paste_on_frames
        pasted = paste(
            scenes, patch, objects, index, mask=self.mask, interpolation=self.interpolation
        )
        return to_8_bits(pasted) if self.quantize else pasted

    def _paste_on_frames(
        self,
        images: Tensor,
        patch: Tensor,
        matrices: Tensor,
        index: Tensor,
        *,
        mask: Tensor | None,
        interpolation: str,
    ) -> Tensor:
        """`paste_patches` with each patch warped by itself, on a frame as large as the image.

        images (B, C, H, W); patch (C, h, w); matrices (N, 2, 3), patch pixel -> image pixel; index
        (N,); mask (1, h, w).
        """
        alpha = patch.new_ones(1, *patch.shape[1:]) if mask is None else mask
        layer = torch.cat((patch * alpha, alpha))[None]
        options = {
            "size": tuple(images.shape[-2:]),
            "interpolation": interpolation,
            "arithmetic": self.arithmetic,
        }
        scenes = list(images.unbind(0))
        for matrix, i in zip(matrices, index.tolist(), strict=True):
            colour, cover = views(layer, matrix[None], self.quantize, options)[0].split(
                (len(patch), 1)
            )
            scenes[i] = colour + (1 - cover) * scenes[i]
        return torch.stack(scenes)

    def printed(self, patch: Tensor, limits: tuple[float, float]) -> Tensor:
        """The patch as it is handed back: on 8-bit levels within the limits, if asked."""
        if not self.quantize:
            return patch
        low, high = (torch.tensor(limit, dtype=torch.float64) * 255 for limit in limits)
        levels = (patch.double() * 255).round().clamp(low.ceil(), high.floor())
        return (levels / 255).to(patch.dtype)
