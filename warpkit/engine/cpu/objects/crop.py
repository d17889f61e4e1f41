"""Crops on a CPU with the native library's warps, which read each image directly."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from warpkit.core.lasting import lasting
from warpkit.engine.cpu import image_lists, launch
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.engine.operators.objects import Crop


def forward(
    options: Crop, places: Tensor, fill: Tensor, *images: Tensor
) -> tuple[Tensor, tuple[()]]:
    """As `objects.crop`."""
    image_of, size, rule, _ = options
    given = places, fill, size, rule, image_of.contiguous().numpy()
    if images[0].ndim == 4:
        return launch.forward(images[0], *given), ()
    return image_lists.forward(images, *given), ()


class Planned:
    """The kernel of crops like one that was planned, of a batch of images."""

    @lasting
    def __init__(
        self,
        images: Tensor,
        fill: Tensor,
        places: Tensor,
        size: tuple[int, int],
        rule: SamplingRule,
    ) -> None:
        """Shapes as in `planned_crop`."""
        self.call = launch.prepared(images, places, fill, size, rule, listed=True)
        self.fill = launch.stored_fill(self.call, fill)

    def forward(
        self, options: Crop, places: Tensor, fill: Tensor, images: Tensor
    ) -> tuple[Tensor, tuple[()]]:
        """As `forward`."""
        index = options.image_of.contiguous().numpy()
        return launch.result(self.call, images, places.detach(), self.fill, index), ()


def backward(
    options: Crop,
    kept: tuple[()],
    grads: Sequence[Tensor],
    tensors: Sequence[Tensor],
    wanted: Sequence[bool],
) -> Sequence[Tensor | None]:
    """The gradients to places, fill and images, the operator's tensors: see `CROP`."""
    image_of, size, rule, _ = options
    places, fill, *images = tensors
    needs = any(wanted[2:]), *wanted[:2]
    given = places, fill, size, rule, needs, image_of.contiguous().numpy()
    if images[0].ndim == 4:
        to_images, *others = launch.backward(grads[0], images[0], *given)
        return *others, to_images
    to_images, *others = image_lists.backward(grads[0], images, *given)
    return *others, *(to_images or [None] * len(images))
