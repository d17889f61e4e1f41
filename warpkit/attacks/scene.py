"""Pastes one patch on the boxes of images, as the attacked pipeline sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from warpkit.attacks.draws import Capture, Draws
from warpkit.attacks.views import views
from warpkit.core.slips import without_looking
from warpkit.flow.images import warp_flow
from warpkit.geometry import affine_matrix, box_to_matrix, compose, image_center
from warpkit.patches import paste_patches
from warpkit.types import Arithmetic, Interpolation, WarpKeywords


@dataclass(frozen=True)
class PatchScene:
    """Images (B, C, H, W) and the boxes (N, 4) of the images `index` (N,) that get the patch."""

    images: Tensor
    boxes: Tensor
    index: Tensor
    mask: Tensor | None
    patch_size: tuple[int, int]
    bend: Tensor | None
    """(h, w, 2): the surface of the patch."""
    capture: Capture
    interpolation: Interpolation
    arithmetic: Arithmetic

    def place(self, corners: Tensor | None, moves: Tensor) -> Tensor:
        """Patch pixel -> image pixel: matrices (N, 2, 3) or (N, 3, 3) for each of the samples.

        corners (S, N, 3, 3): transformations of the patch itself; moves (S, N or 1, rows, 3): of
        the image, about the centre of each box, given about the centre of the patch.
        """
        boxes = self.boxes.double()
        middle = (boxes[:, :2] + boxes[:, 2:]) / 2 - 0.5
        to_box = middle - middle.new_tensor(image_center(self.patch_size))
        moves = moves.double().expand(-1, len(boxes), -1, -1)
        there, back = (affine_matrix(translation=by) for by in (to_box, -to_box))
        placed = (box_to_matrix(boxes, self.patch_size), back, moves, there)
        return compose(*placed) if corners is None else compose(corners.double(), *placed)

    def render(self, patch: Tensor, draws: Draws) -> Tensor:
        """The objective's input, (B * n, C, H, W), for a patch (C, h, w)."""
        n = len(draws)
        patches = self.print(patch)[None]
        if draws.patch_colours is not None:  # each box in each view has its own colours
            patches = patches.expand(len(self.boxes) * n, -1, -1, -1)
            patches = self.capture.colour(patches, draws.patch_colours)
        scenes = self.images.repeat_interleave(n, dim=0)
        # object by object, so that later ones cover earlier ones in each view
        index = (self.index[:, None] * n + torch.arange(n, device=self.index.device)).flatten()
        objects = draws.matrices.movedim(0, 1).flatten(0, 1)
        paste: Any = paste_patches if self.arithmetic == "exact" else self._paste_on_frames
        pasted = without_looking(paste)(
            scenes,
            patches if len(patches) > 1 else patches[0],
            objects,
            index,
            mask=self.mask,
            interpolation=self.interpolation,
            flow=self.bend,
        )
        return self.capture.show(self.capture.rounded(pasted), draws.colours)

    def print(self, patch: Tensor) -> Tensor:
        """The patch (C, h, w) as it is printed: on 8-bit levels, if requested."""
        return self.capture.rounded(patch)

    def _paste_on_frames(
        self,
        images: Tensor,
        patches: Tensor,
        matrices: Tensor,
        index: Tensor,
        *,
        mask: Tensor | None,
        interpolation: Interpolation,
        flow: Tensor | None,
    ) -> Tensor:
        """`paste_patches`, but each patch is first warped onto a frame as large as the image.

        images (B, C, H, W); patches (N, C, h, w) or (C, h, w); matrices (N, 2, 3), patch pixel ->
        image pixel; index (N,); mask (1, h, w); flow (h, w, 2), applied in a separate sampling.
        """
        patches = patches.expand(len(matrices), -1, -1, -1)
        alpha = patches.new_ones(1, *patches.shape[2:]) if mask is None else mask
        options: WarpKeywords = {
            "size": tuple(images.shape[-2:]),
            "interpolation": interpolation,
            "arithmetic": self.arithmetic,
        }
        scenes = list(images.unbind(0))
        for patch, matrix, i in zip(patches, matrices, index.tolist(), strict=True):
            layer = torch.cat((patch * alpha, alpha))[None]
            layer = layer if flow is None else warp_flow(layer, flow)
            warped = views(layer, matrix[None], self.capture.quantize, options)[0]
            colour, cover = warped.split((len(patch), 1))
            scenes[i] = colour + (1 - cover) * scenes[i]
        return torch.stack(scenes)


def printed(patch: Tensor, limits: tuple[float, float], quantize: bool) -> Tensor:
    """The patch (C, h, w) as it is returned: on 8-bit levels within the limits, if requested."""
    if not quantize:
        return patch
    low, high = (
        torch.tensor(limit, dtype=torch.float64, device=patch.device) * 255 for limit in limits
    )
    levels = (patch.double() * 255).round().clamp(low.ceil(), high.floor())
    return (levels / 255).to(patch.dtype)
