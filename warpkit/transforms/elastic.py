"""Random elastic deformations: ElasticTransform."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import v2
from torchvision.transforms.v2._utils import query_size

from warpkit.core import checks
from warpkit.engine.definitions.rules import INTERPOLATIONS
from warpkit.flow.images import warp_flow
from warpkit.transforms.arguments import AnyInterpolation, Fill, check_border, check_fill, mode_name
from warpkit.transforms.base import Geometric
from warpkit.transforms.images import fill_of, has_pixels, through
from warpkit.types import Border, Interpolation


class ElasticTransform(Geometric, v2.ElasticTransform):
    """torchvision.transforms.v2.ElasticTransform, warped by warpkit.

    Args:
        alpha: how far pixels move, one number or (x, y).
        sigma: how smooth the field is, one number or (x, y), in pixels.
        interpolation, fill, border: as in `RandomAffine`.

    torchvision's code moves boxes and keypoints, and takes the negative field for its inverse.

    >>> ElasticTransform(alpha=0.0, sigma=0.1)(torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[[1., 2.],
             [3., 4.]]])
    """

    def __init__(
        self,
        alpha: float | Sequence[float] = 50.0,
        sigma: float | Sequence[float] = 5.0,
        interpolation: AnyInterpolation = "bilinear",
        fill: Fill = 0,
        *,
        border: Border = "constant",
    ) -> None:
        function = "ElasticTransform"
        name = mode_name(function, interpolation, INTERPOLATIONS)
        super().__init__(alpha, sigma, fill=check_fill(function, fill))
        self.interpolation = name
        self.border = check_border(function, border)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """torchvision's draw, which blurs noise of the images' size."""
        size = query_size(flat_inputs)
        reach = max(int(8 * sigma + 1) // 2 for sigma in self.sigma)
        if min(size) <= reach:
            wanted = f"of more than {reach} pixels a side for sigma={self.sigma}"
            checks.fail("ElasticTransform", "inpt", wanted, f"size {tuple(size)}")
        return super().make_params(flat_inputs)

    def map(self, params: dict[str, Any], size: Sequence[int]) -> Tensor:
        """The flow (h, w, 2) of images of `size` (H, W), as `warp_flow` takes it, float64."""
        height, width = size
        half = torch.tensor([width / 2, height / 2], dtype=torch.float64, device="cpu")
        return params["displacement"][0].double().cpu() * half  # torchvision's reach from -1 to 1

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One input under the drawn `params`."""
        if not has_pixels(inpt):
            return super().transform(inpt, params)
        function = "ElasticTransform"
        fill = fill_of(function, self, inpt)

        def sample(image: Tensor, interpolation: Interpolation) -> Tensor:
            flow = self.map(params, image.shape[-2:]).to(image.device)
            options = {"border": self.border, "border_value": fill(image)}
            return warp_flow(image, flow, interpolation=interpolation, **options)

        return through(function, inpt, self.interpolation, sample)
