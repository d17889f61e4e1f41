"""Pastes one patch on the boxes of images, as the attacked pipeline sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from warpkit.attacks.expectations import views
from warpkit.attacks.random_parameters import Capture, Draws
from warpkit.core.mistakes import without_warnings
from warpkit.engine.definitions.objects.canvases import Images, listed
from warpkit.flow.images import warp_flow
from warpkit.geometry import affine_matrix, box_to_matrix, compose, image_center
from warpkit.patches import paste_patches
from warpkit.types import Arithmetic, Interpolation, WarpKeywords


@dataclass(frozen=True)
class PatchScene:
    """Images, and the boxes on the images `index` (N,) that get the patch."""

    images: Images
    """(B, C, H, W), or a tuple of (C, H_i, W_i)."""
    boxes: Tensor
    """(N, 4), (N, 5) or (N, 4, 2)."""
    index: Tensor
    mirrored: Tensor | None
    """(N,), bool: the boxes that get the patch mirrored left to right."""
    mask: Tensor | None
    patch_size: tuple[int, int]
    bend: Tensor | None
    """(h, w, 2): the surface of the patch."""
    capture: Capture
    interpolation: Interpolation
    arithmetic: Arithmetic
    antialias: bool | int

    def place(self, corners: Tensor | None, moves: Tensor) -> Tensor:
        """Patch pixel -> image pixel: matrices (N, 2, 3) or (N, 3, 3) for each of the samples.

        corners (S, N, 3, 3): transformations of the patch itself; moves (S, N or 1, rows, 3): of
        the image, about the centre of each box, given about the centre of the patch.
        """
        boxes = self.boxes.double()
        if boxes.ndim == 3:
            middle = boxes.mean(1) - 0.5
        elif boxes.shape[1] == 5:
            middle = boxes[:, :2] - 0.5
        else:
            middle = (boxes[:, :2] + boxes[:, 2:]) / 2 - 0.5
        to_box = middle - middle.new_tensor(image_center(self.patch_size))
        moves = moves.double().expand(-1, len(boxes), -1, -1)
        there, back = (affine_matrix(translation=by) for by in (to_box, -to_box))
        placed = [box_to_matrix(boxes, self.patch_size), back, moves, there]
        if corners is not None:
            placed.insert(0, corners.double())
        if self.mirrored is not None:
            flip = torch.eye(2, 3, dtype=boxes.dtype, device=boxes.device)
            flip = flip.repeat(len(boxes), 1, 1)
            flip[self.mirrored, 0, 0], flip[self.mirrored, 0, 2] = -1.0, self.patch_size[1] - 1.0
            placed.insert(0, flip)
        return compose(*placed)

    def render(self, patch: Tensor, draws: Draws) -> Any:
        """The objective's input for a patch (C, h, w): (B * n, C, H, W), or a list of B * n."""
        n = len(draws)
        patches = self.print(patch)[None].expand(-1, listed(self.images)[0].shape[-3], -1, -1)
        if draws.patch_colours is not None:  # each box in each view has its own colours
            patches = patches.expand(len(self.boxes) * n, -1, -1, -1)
            patches = self.capture.on_boxes(patches, draws.patch_colours)
        # object by object, so that later ones cover earlier ones in each view
        index = (self.index[:, None] * n + torch.arange(n, device=self.index.device)).flatten()
        matrices = draws.matrices
        if draws.camera is not None:
            matrices = compose(matrices, draws.camera.to(matrices)[:, self.index])
        paste: Any = paste_patches if self.arithmetic == "exact" else self._paste_on_frames
        pasted = without_warnings(paste)(
            self._scenes(n, draws.camera),
            patches if len(patches) > 1 else patches[0],
            matrices.movedim(0, 1).flatten(0, 1),
            index,
            mask=self.mask,
            interpolation=self.interpolation,
            flow=self.bend,
            antialias=self.antialias,
        )
        if isinstance(pasted, Tensor):
            return self.capture.show(self.capture.rounded(pasted), draws.colours)
        views = [torch.stack(pasted[i : i + n]) for i in range(0, len(pasted), n)]
        return self.capture.show_each(list(map(self.capture.rounded, views)), draws.colours)

    def _scenes(self, n: int, camera: Tensor | None) -> Images:
        """Each image n times, image by image, as the camera (n, B, rows, 3) sees it."""
        if camera is not None:
            options: WarpKeywords = {
                "interpolation": self.interpolation,
                "arithmetic": self.arithmetic,
                "antialias": self.antialias,
            }
            quantize = self.capture.quantize
            parts = [
                views(image[None], camera[:, i], quantize, options)
                for i, image in enumerate(self.images)
            ]
            if isinstance(self.images, Tensor):
                return torch.cat(parts)
            return tuple(view for part in parts for view in part)
        if isinstance(self.images, Tensor):
            return self.images.repeat_interleave(n, dim=0)
        return tuple(image for image in self.images for _ in range(n))

    def print(self, patch: Tensor) -> Tensor:
        """The patch (C, h, w) as it is printed: on 8-bit levels, if requested."""
        return self.capture.rounded(patch)

    def _paste_on_frames(
        self,
        images: Images,
        patches: Tensor,
        matrices: Tensor,
        index: Tensor,
        *,
        mask: Tensor | None,
        interpolation: Interpolation,
        flow: Tensor | None,
        antialias: bool | int,
    ) -> Images | list[Tensor]:
        """`paste_patches`, but each patch is first warped onto a frame as large as the image.

        images (B, C, H, W) or a tuple of (C, H_i, W_i); patches (N, C, h, w) or (C, h, w);
        matrices (N, 2, 3), patch pixel -> image pixel; index (N,); mask (1, h, w); flow (h, w, 2),
        applied in a separate sampling.
        """
        patches = patches.expand(len(matrices), -1, -1, -1)
        alpha = patches.new_ones(1, *patches.shape[2:]) if mask is None else mask
        options: WarpKeywords = {
            "interpolation": interpolation,
            "arithmetic": self.arithmetic,
            "antialias": antialias,
        }
        scenes = list(images)
        for patch, matrix, i in zip(patches, matrices, index.tolist(), strict=True):
            layer = torch.cat((patch * alpha, alpha))[None]
            layer = layer if flow is None else warp_flow(layer, flow)
            size = scenes[i].shape[-2], scenes[i].shape[-1]
            warp_options: WarpKeywords = {**options, "size": size}
            warped = views(layer, matrix[None], self.capture.quantize, warp_options)[0]
            colour, cover = warped.split((len(patch), 1))
            scenes[i] = colour + (1 - cover) * scenes[i]
        return torch.stack(scenes) if isinstance(images, Tensor) else scenes


def print_patch(patch: Tensor, limits: tuple[float, float], quantize: bool) -> Tensor:
    """The patch (C, h, w) as it is returned: on 8-bit levels within the limits, if requested."""
    if not quantize:
        return patch
    low, high = (
        torch.tensor(limit, dtype=torch.float64, device=patch.device) * 255 for limit in limits
    )
    levels = (patch.double() * 255).round().clamp(low.ceil(), high.floor())
    return (levels / 255).to(patch.dtype)
