"""The common base of all transforms: rejects arrays, guards scripting."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

import numpy as np
import PIL.Image
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode, v2

from warpkit.core import checks, exports
from warpkit.engine.definitions.rule_names import ALIASES
from warpkit.transforms.images import has_pixels
from warpkit.transforms.labels import LABELS


def refuse_draws(transform: v2.Transform) -> None:
    """Raise an error during tracing: a graph would keep the draws made while it is built."""
    if hasattr(transform, "p") or type(transform).make_params is not v2.Transform.make_params:
        exports.refuse(
            type(transform).__name__,
            "because it draws random numbers",
            "transform the images before the model, or warp by a matrix that it is given",
        )


class Geometric(v2.Transform):
    """The base class, in addition to torchvision's class of the same name."""

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        """torchvision's checks; arrays in place of images raise an error."""
        refuse_draws(self)
        super().check_inputs(flat_inputs)
        check_arrays(type(self).__name__, flat_inputs)

    def _call_kernel(self, functional: Any, inpt: Any, *args: Any, **kwargs: Any) -> Any:
        check_arrays(type(self).__name__, [inpt])
        return super()._call_kernel(functional, inpt, *args, **kwargs)

    def _extract_params_for_v1_transform(self) -> dict[str, Any]:
        """The arguments of torchvision's first-generation transform, which scripting uses.

        It has no border and not every interpolation, so others raise an error.
        """
        name, scripted = type(self).__name__, self._v1_transform_cls
        assert scripted is not None
        wanted = "under torch.jit.script, which runs torchvision.transforms." + scripted.__name__
        modes = [mode.value for mode in InterpolationMode]
        if getattr(self, "interpolation", modes[0]) not in modes:
            requirement = f"one of {', '.join(map(repr, modes))} {wanted}"
            checks.fail(name, "interpolation", requirement, repr(self.interpolation))
        params = super()._extract_params_for_v1_transform()
        defaults = {
            argument: parameter.default
            for kind in reversed(type(self).__mro__)
            for argument, parameter in signature(kind.__init__).parameters.items()
        }
        for argument in params.keys() - signature(scripted).parameters.keys():
            value = params.pop(argument)
            value = ALIASES.get(value, value) if argument == "border" else value
            default = defaults.get(argument)
            if value != default:
                checks.fail(name, argument, f"{default!r} {wanted}", f"{value!r:.60}")
        center = params.get("center")
        if center is not None:
            if any(x != round(x) for x in center):
                checks.fail(name, "center", f"two whole numbers {wanted}", center)
            params["center"] = [round(x) for x in center]
        is_resize = isinstance(self, (v2.Resize, v2.RandomResizedCrop))
        if is_resize and params["interpolation"] == InterpolationMode.NEAREST:
            params["interpolation"] = InterpolationMode.NEAREST_EXACT  # samples centres
        return params


def check_arrays(name: str, inputs: Sequence[Any]) -> None:
    """Reject NumPy images: torchvision passes arrays through unchanged.

    An array in addition to an image is the caller's own data. With boxes, points or masks only, an
    array of their canvas's size counts as an image.
    """
    arrays = [x for x in inputs if isinstance(x, np.ndarray) and x.ndim >= 2]
    if not arrays:
        return
    dims = 3 if any(array.ndim >= 3 for array in arrays) else 2
    if any(_is_image(x, dims) for x in inputs):
        return
    canvases = [
        tuple(v2.functional.get_size(x))
        for x in inputs
        if isinstance(x, (*LABELS, tv_tensors.Mask))
    ]
    for array in arrays:
        sizes = (array.shape[:2], array.shape[-2:], array.shape[-3:-1])
        if not canvases or any(size in canvases for size in sizes):
            wanted = "a tensor (..., C, H, W), a PIL image or one of torchvision's tv_tensors "
            wanted += "(v2.functional.to_image makes one of an array (H, W, C))"
            got = f"a NumPy array of shape {array.shape}"
            checks.fail(name, "inpt", wanted, got, TypeError)


def _is_image(value: Any, dims: int) -> bool:
    """Whether an input is an image; a plain tensor of `dims` dimensions may be one."""
    if not has_pixels(value) or isinstance(value, tv_tensors.Mask):
        return False
    is_typed = isinstance(value, (PIL.Image.Image, tv_tensors.TVTensor))
    return is_typed or (isinstance(value, Tensor) and value.ndim >= dims)
