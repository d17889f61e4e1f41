"""Straight-through gradients: the value of one tensor with the gradient of another."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral

import torch
from torch import Tensor

from warpkit.core import checks, tracing
from warpkit.core.caller_warnings import warn
from warpkit.engine.definitions.reference import compute_dtype, with_gradient_of


def straight_through(value: Tensor, surrogate: Tensor) -> Tensor:
    """The value of `value` with the gradient of `surrogate`.

    Both have the same shape and a floating type. The result equals `value` to the last bit, in its
    type; `value` gets no gradient. Biased: the gradient is that of another function. Use it if the
    true gradient is zero or missing (rounding, nearest, a hard threshold) and the surrogate behaves
    similarly. docs/gradients.md lists the other straight-through forms. Gradients: all orders and
    both modes of `surrogate`; zero where it is NaN or infinite.

    >>> import torch
    >>> x = torch.tensor([0.2, 0.7], requires_grad=True)
    >>> straight_through(x.round(), x * x).sum().backward()
    >>> x.grad
    tensor([0.4000, 1.4000])
    """
    name = "straight_through"
    for argument, tensor in (("value", value), ("surrogate", surrogate)):
        check_floating(name, argument, tensor)
    if value.shape != surrogate.shape:
        wanted = f"of the shape of `value`, {checks.shape_of(value)}"
        checks.fail(name, "surrogate", wanted, checks.shape_of(surrogate))
    checks.check_device(name, "surrogate", surrogate, value.device)
    return with_gradient_of(value.detach(), surrogate.to(value.dtype))


def quantize(image: Tensor, *, levels: int = 256) -> Tensor:
    """Round an image in [0, 1] to `levels` levels, as a file stores it, with gradient 1.

    image (...), floating; values below 0 and above 1 become 0 and 1; ties go to the even level.
    Returns the same shape and type. Biased: the true gradient is zero nearly everywhere, this one
    is 1, even outside [0, 1], so that a saturated pixel can recover. Use it if a perturbation must
    survive being saved as 8 bits. NaN stays NaN. Gradients: first order, both modes (the second is
    zero). On the CPU, warns about values below -1 or above 2, as in images in [0, 255]: no
    perturbation by at most 1 causes them.

    >>> import torch
    >>> quantize(torch.tensor([0.1, 0.5, 1.2]), levels=3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    name = "quantize"
    check_floating(name, "image", image)
    if not isinstance(levels, Integral) or isinstance(levels, bool) or levels < 2:
        checks.fail(name, "levels", "an integer of at least 2", repr(levels))
    if levels > 2**53:  # no type distinguishes more
        checks.fail(name, "levels", "an integer of at most 2^53", f"{levels!r:.60}")
    levels = int(levels)
    warn_beyond_unit(name, image)
    exact = image.detach().to(compute_dtype(image.dtype))
    rounded = (exact.clamp(0, 1) * (levels - 1)).round() / (levels - 1)
    return with_gradient_of(rounded.to(image.dtype), image)


def through_uint8(function: Callable[[Tensor], Tensor], image: Tensor) -> Tensor:
    """The result of an 8-bit function of an image, with the gradient of the same steps on floats.

    The value is function(8-bit image) / 255, where the 8-bit image is image * 255 rounded half to
    even; the gradient is that of function(image). function: a callable on images, such as
    functools.partial(warpkit.resize, size=(224, 224), arithmetic="pillow"), a warp, or a chain of
    them; for a uint8 image it must return a uint8 tensor, for a floating one a floating tensor of
    the same shape. image (...), floating, in [0, 1] (or up to half a level beyond, which rounds
    back). Returns function's shape, of the image's type. function must scale its own constants,
    such as a border value: 255 in the first call is 1 in the second. Gradients: all orders and
    both modes of function's, also to tensors that function holds. Raises ValueError if the image
    is on the CPU and leaves [0, 1] or has a NaN; TypeError if function returns something else.

    >>> import torch
    >>> image = torch.tensor([0.1, 0.5], requires_grad=True)
    >>> def halve(image):
    ...     return image // 2 if image.dtype == torch.uint8 else image / 2
    >>> result = through_uint8(halve, image)
    >>> (result.detach() * 255).round(), torch.autograd.grad(result.sum(), image)[0]
    (tensor([13., 64.]), tensor([0.5000, 0.5000]))
    """
    name = "through_uint8"
    if not callable(function) or isinstance(function, type):
        checks.fail(name, "function", "a function of an image", checks.kind_of(function), TypeError)
    check_floating(name, "image", image)
    exact = image.detach().to(compute_dtype(image.dtype)) * 255
    inside = (exact >= -0.5) & (exact <= 255.5)  # false for NaN
    checks.check_values(name, "image", ~inside, "in [0, 1]", image.detach())
    with torch.no_grad():
        value = function(exact.round().clamp(0, 255).to(torch.uint8))
    if not isinstance(value, Tensor) or value.dtype != torch.uint8:
        got = value.dtype if isinstance(value, Tensor) else type(value).__name__
        checks.fail(name, "function", "one that makes uint8 of a uint8 image", got, TypeError)
    value = (value.to(exact.dtype) / 255).to(image.dtype)
    if not tracing.can_differentiate():
        return value
    surrogate = function(image)
    if not isinstance(surrogate, Tensor) or not surrogate.is_floating_point():
        got = surrogate.dtype if isinstance(surrogate, Tensor) else type(surrogate).__name__
        checks.fail(name, "function", "one that makes floats of a floating image", got, TypeError)
    if surrogate.shape != value.shape:
        wanted = f"one that makes the shape that it makes of 8 bits, {checks.shape_of(value)}"
        checks.fail(name, "function", wanted, checks.shape_of(surrogate))
    return with_gradient_of(value, surrogate.to(image.dtype))


def warn_beyond_unit(name: str, image: Tensor) -> None:
    """Warn that an image is outside [0, 1] by more than a perturbation."""
    warn_of_bounds(name, bounds_of(image))


def warn_of_bounds(name: str, bounds: tuple[float, float] | None) -> None:
    """Warn that an image with these least and greatest numbers is not one in [0, 1]."""
    if bounds is not None and (bounds[0] < -1 or bounds[1] > 2):
        text = f"{name}: the image has values from {bounds[0]:g} to {bounds[1]:g}, but it should "
        warn(text + "be in [0, 1]: values outside become 0 or 1 (divide an 8-bit image by 255)")


def bounds_of(image: Tensor) -> tuple[float, float] | None:
    """The least and greatest number (NaN if there is one), read once.

    None if there are none, or they cannot be read without synchronisation.
    """
    if image.device.type != "cpu" or image.numel() == 0 or not tracing.is_eager(image):
        return None
    low, high = (bound.item() for bound in image.detach().aminmax())
    return low, high


def check_floating(name: str, argument: str, tensor: object) -> None:
    if not isinstance(tensor, Tensor):
        checks.fail(name, argument, "a tensor", type(tensor).__name__, TypeError)
    if tensor.dtype not in checks.FLOATS:
        wanted = "of a floating type: integers carry no gradient"
        checks.fail(name, argument, wanted, tensor.dtype, TypeError)
    checks.check_dense(name, argument, tensor)
