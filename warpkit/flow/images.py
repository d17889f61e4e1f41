"""Warps images by flows: `warpkit.remap` at every pixel's offset."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from warpkit import warp
from warpkit.core import checks
from warpkit.core.mistakes import warn_if_points
from warpkit.core.sharding import batched
from warpkit.engine.definitions.reference import with_gradient_of
from warpkit.engine.definitions.rule_names import parse_rule
from warpkit.flow.arguments import as_field
from warpkit.types import Arithmetic, BackendName, Border, FlowLike, NumbersLike, WarpInterpolation


@batched(image=3, flow=3, border_value=1, background=3)
def warp_flow(
    image: Tensor,
    flow: FlowLike,
    *,
    interpolation: WarpInterpolation = "bilinear",
    border: Border = "constant",
    border_value: NumbersLike = 0.0,
    background: Tensor | None = None,
    antialias: bool | int = False,
    arithmetic: Arithmetic = "exact",
    backend: BackendName = "auto",
) -> Tensor:
    """Warp images by flows: out(p) = image(p + flow(p)).

    image (..., C, H, W); flow (..., h, w, 2), the offset (dx, dy) in pixels of every output pixel,
    added to it in float64; background (..., C, h, w). The batches of image and flow broadcast, and
    neither is copied. Returns (..., C, h, w). A zero flow returns a finite image bit for bit, with
    every backend and border. Otherwise as `warpkit.remap` with relative=True
    (cv2.WARP_RELATIVE_MAP): types, errors, antialias, and gradients of all orders to image and
    flow; nearest has none to the flow.

    >>> image = torch.arange(6.0).reshape(1, 2, 3)
    >>> warp_flow(image, [[[0.5, 0.0], [1.0, 1.0]]])
    tensor([[[0.5000, 5.0000]]])
    """
    name = "warp_flow"
    image = checks.check_image(name, "image", image, labels=True)
    rule = parse_rule(name, interpolation, border, arithmetic, splines=True)
    flow = as_field(name, "flow", flow, image.device)
    warn_if_points(name, flow, image.shape[-2:])
    result = warp.remap_by(
        name, image, flow, rule, border_value, background, backend, made_of={"flow": flow},
        relative=True, antialias=antialias,
    )  # fmt: skip
    # lanczos4's weights at integer positions are sines of multiples of pi, 1e-17 and not 0, and a
    # spline's sum of coefficients is rounded
    plain = rule.interpolation in ("nearest", "bilinear", "bicubic") or rule.arithmetic != "exact"
    rounds = backend == "grid_sample" or not plain
    if rounds and image.is_floating_point():
        return _exact_where_still(result, image, flow)
    return result


def _exact_where_still(result: Tensor, image: Tensor, flow: Tensor) -> Tensor:
    """The result, with the image's own value and gradient for pixels of zero offset.

    result (..., C, h, w); image (..., C, H, W); flow (..., h, w, 2).
    """
    height, width = flow.shape[-3:-1]
    h, w = min(height, image.shape[-2]), min(width, image.shape[-1])
    margins = (0, width - w, 0, height - h)
    pixels = F.pad(image.detach()[..., :h, :w], margins)
    still = F.pad((flow.detach() == 0).all(-1)[..., :h, :w], margins)
    value = torch.where(still[..., None, :, :], pixels, result.detach())
    return with_gradient_of(value, result)
