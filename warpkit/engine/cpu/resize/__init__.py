"""Resizes in the native library: the bits of the reference and of its arithmetics, faster.

`axes` has the taps, and `prepared` the library's calls, made once for shapes and options. `launch`
turns tensors into calls. If no kernel sums like an arithmetic, the arithmetic itself is used, in
plain torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType

import torch
from torch import Tensor

from warpkit.core.tracing import is_eager, wants_gradient
from warpkit.engine import cpu
from warpkit.engine.arithmetic import opencv_resize, pillow, torch_resize
from warpkit.engine.definitions import resize as reference
from warpkit.engine.definitions.exact_gradient import Given, Values
from warpkit.engine.definitions.reference import with_gradient_of
from warpkit.engine.definitions.resize import Edges, ResizeRule
from warpkit.engine.operators.resize import RESIZE, Resize


def unsupported_reasons(image: Tensor, rule: ResizeRule) -> list[str]:
    """The reasons why the kernels do not support a call."""
    return cpu.unsupported_reasons(image, rule)


def resize(
    image: Tensor,
    size: Sequence[int],
    rule: ResizeRule,
    box: Sequence[Edges] | None,
    factors: tuple[float, float] | None = None,
    values: Values | None = None,
) -> Tensor:
    """As `resize` of the reference and of the arithmetics; values: as in `with_exact_gradient`."""
    if rule.arithmetic == "exact" or rule.is_zoom or rule.is_filter:
        return _exact(image, size, rule, box, values)
    plainly = not is_eager(image) or wants_gradient(image)
    if rule.arithmetic == "pillow":
        has_kernel = image.dtype in (torch.uint8, torch.float32) or rule.interpolation == "nearest"
        if plainly or not has_kernel:
            return pillow.resize(image, size, rule, box)
        return _launch().pillow(image, size, rule, box)
    if rule.arithmetic == "torchvision":
        computes_floats = image.is_floating_point() or rule.interpolation == "area"
        if plainly or computes_floats:
            return torch_resize.resize(image, size, rule)
        return _launch().torch_bytes(image, size, rule)
    found = None if plainly else _launch().opencv(image, size, rule, factors)
    return opencv_resize.resize(image, size, rule, None, factors) if found is None else found


def kept(
    image: Tensor, size: Sequence[int], rule: ResizeRule, box: tuple[Edges, Edges] | None
) -> Callable[[Tensor], Tensor] | None:
    """As `kept` of `launch`."""
    return _launch().kept(image, size, rule, box)


def _launch() -> ModuleType:
    from warpkit.engine.cpu.resize import launch

    return launch


def _exact(
    image: Tensor,
    size: Sequence[int],
    rule: ResizeRule,
    box: Sequence[Edges] | None,
    values: Values | None,
) -> Tensor:
    by_tensor = box is not None and isinstance(box[0].low, Tensor)
    if by_tensor:
        found = reference.resize(image, size, rule, box)
        return found if values is None else with_gradient_of(values(), found)
    if rule.interpolation == "nearest" and (wants_gradient(image) or not is_eager(image)):
        return reference.resize(image, size, rule, box)
    options = Resize(size, rule, None if box is None else (box[0], box[1]))
    if values is not None:
        return RESIZE.by(Given(values), options, image)
    return RESIZE(options, image)
