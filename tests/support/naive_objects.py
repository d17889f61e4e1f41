"""Reference loops for functions on objects, as users write them, with F.grid_sample."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

import warpkit as wk
from tests.support.inputs import noise
from tests.support.tolerances import TOLERANCE

REFUSED = [
    (
        {"images": torch.zeros(2, 1, 4, 4, device="meta")},
        "`images` must be on a device that holds values: the number of painted pixels depends on",
    ),
    (
        {"mask": torch.zeros(1, 1, 3, 3).to_sparse()},
        "`mask` must be a dense tensor, got torch.sparse_coo",
    ),
    (
        {"mask": torch.zeros(1, 1, 3, 3).to(torch.float8_e5m2)},
        "`mask` must be of one of the types float16, bfloat16, float32, float64, got torch.f",
    ),
]
"""Arguments that every function which paints refuses, and how."""


class Scene(NamedTuple):
    images: Tensor
    boxes: Tensor
    theta: Tensor
    index: Tensor


def scene(count: int = 9, *, batch: int = 3, seed: int = 0, beyond: int = 0) -> Scene:
    """Images of noise with overlapping integer boxes of many sizes, in no order of images."""
    generator = torch.Generator().manual_seed(seed)
    height, width = 17, 21
    corner = torch.rand(count, 2, generator=generator, dtype=torch.float64)
    side = torch.randint(1, 11, (count, 2), generator=generator).double()
    limit = torch.tensor([width, height]) - side + 2 * beyond
    low = (corner * (limit + 1)).floor() - beyond
    turn = 0.4 * torch.randn(count, 2, 3, generator=generator, dtype=torch.float64)
    return Scene(
        noise(batch, 2, height, width, seed=seed + 1),
        torch.cat((low, low + side), dim=1),
        torch.eye(2, 3, dtype=torch.float64) + turn,
        torch.randint(0, batch, (count,), generator=generator),
    )


def transform_loop(
    scene: Scene,
    *,
    overlap: str,
    mask: Tensor | None = None,
    opacity: Tensor | None = None,
    mode: str = "bilinear",
    padding: str = "zeros",
) -> Tensor:
    """Slice, F.affine_grid, F.grid_sample and "over", one object at a time."""
    images, boxes, theta, index = scene
    original, result = images, images
    for i, (b, (x1, y1, x2, y2)) in enumerate(
        zip(index.tolist(), boxes.long().tolist(), strict=True)
    ):
        part = (original if overlap == "last" else result)[b : b + 1, :, y1:y2, x1:x2]
        cover = torch.ones_like(part[:, :1]) if mask is None else mask[i : i + 1]
        grid = F.affine_grid(theta[i : i + 1], list(part.shape), align_corners=False)
        warped = F.grid_sample(
            torch.cat((part * cover, cover), 1), grid, mode, padding, align_corners=False
        )
        colour, alpha = warped[0, :-1], warped[0, -1:]
        if mask is None:
            alpha = torch.ones_like(alpha)
        if opacity is not None:
            colour, alpha = colour * opacity[i], alpha * opacity[i]
        below = result[b, :, y1:y2, x1:x2]
        result = result.clone()
        result[b, :, y1:y2, x1:x2] = colour + (1 - alpha) * below
    return result


def transform_by_pixels(
    scene: Scene,
    masks: Tensor,
    opacity: Tensor,
    *,
    overlap: str,
    edge: str = "hard",
    padding: str = "zeros",
) -> Tensor:
    """`transform_patches` with masks over whole images (N, 1, H, W), a pixel at a time.

    By the definition: the inverse matrix, in pixels from the box's corner, gives the position that
    a pixel of the box reads; a tap counts if it is in the box, weighted by the mask at the tap's
    place in the image. The scene's thetas are pixel matrices here. Bilinear; padding is "zeros" or
    "border".
    """
    images, boxes, matrices, index = scene
    height, width = images.shape[-2:]
    pixels = [list(image.permute(1, 2, 0).flatten(0, 1)) for image in images]  # rows of colours
    original = [list(image) for image in pixels]
    for i, b in enumerate(index.tolist()):
        x1, y1, x2, y2 = boxes[i]
        share = {}
        for y in range(height):
            for x in range(width):
                if edge == "hard":
                    inside = x1 <= x + 0.5 < x2 and y1 <= y + 0.5 < y2
                    part = images.new_tensor(float(inside))
                else:
                    part = (torch.minimum(x2, x1.new_tensor(x + 1)) - x1.clamp(min=x)).clamp(min=0)
                    part = part * (torch.minimum(y2, y1.new_tensor(y + 1)) - y1.clamp(min=y)).clamp(
                        min=0
                    )
                if part > 0:
                    share[x, y] = part
        rows = {y for _, y in share}
        columns = {x for x, _ in share}
        inverse = torch.linalg.inv(torch.cat((matrices[i], matrices.new_tensor([[0, 0, 1]]))))
        source = original[b] if overlap == "last" else list(pixels[b])
        for (x, y), part in share.items():
            at = inverse @ torch.stack((x - x1, y - y1, torch.ones_like(x1)))
            u, v = at[0] + x1, at[1] + y1
            left, top = int(torch.floor(u)), int(torch.floor(v))
            colour, alpha = torch.zeros_like(source[0]), u.new_zeros(())
            for column, row in [(left + p, top + q) for p in (0, 1) for q in (0, 1)]:
                weight = (1 - (u - column).abs()) * (1 - (v - row).abs())
                if padding == "border":
                    column = min(max(column, min(columns)), max(columns))
                    row = min(max(row, min(rows)), max(rows))
                elif (column, row) not in share:
                    continue
                inner = share[column, row] if edge == "soft" and padding == "zeros" else 1.0
                weight = weight * masks[i, 0, row, column] * inner
                colour, alpha = colour + weight * source[row * width + column], alpha + weight
            k = y * width + x
            alpha = alpha * opacity[i] * part
            pixels[b][k] = colour * opacity[i] * part + (1 - alpha) * pixels[b][k]
    return torch.stack([torch.stack(p).unflatten(0, (height, width)) for p in pixels]).movedim(3, 1)


def paste_loop(
    images: Tensor,
    patches: Tensor,
    matrices: Tensor,
    index: Tensor,
    *,
    mask: Tensor | None = None,
    opacity: Tensor | None = None,
    interpolation: str = "bilinear",
) -> Tensor:
    """Warp each patch and its mask to the whole image, premultiplied, and compose "over"."""
    result = list(images)
    for i, b in enumerate(index.tolist()):
        patch = patches if patches.ndim == 3 else patches[i]
        cover = torch.ones_like(patch[:1])
        if mask is not None:
            cover = mask if mask.ndim == 3 else mask[i]
        both = wk.warp_perspective(
            torch.cat((patch * cover, cover)),
            torch.cat((matrices[i], matrices.new_tensor([[0, 0, 1]])))[:3],
            size=images.shape[-2:],
            interpolation=interpolation,
        )
        if opacity is not None:
            both = both * opacity[i]
        result[b] = both[:-1] + (1 - both[-1:]) * result[b]
    return torch.stack(result)


def transform(scene: Scene, **options) -> Tensor:
    """`transform_patches` on a scene."""
    return wk.transform_patches(
        scene.images, scene.boxes, scene.theta, scene.index, space="theta", **options
    )


def assert_same_with_gradients(scene: Scene, run, loop, *others: Tensor) -> None:
    """Compare two functions of the scene: values, and gradients to images, thetas and `others`."""
    results, tolerance = [], TOLERANCE["objects against the loop"]
    for function in (run, loop):
        images = scene.images.clone().requires_grad_()
        theta = scene.theta.clone().requires_grad_()
        extra = [other.clone().requires_grad_() for other in others]
        value = function(scene._replace(images=images, theta=theta), *extra)
        weight = noise(*value.shape, seed=99)
        gradients = torch.autograd.grad((value * weight).sum(), [images, theta, *extra])
        results.append([value.detach(), *gradients])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=0)
