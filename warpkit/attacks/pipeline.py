"""Preprocessing pipelines: the value in 8 bits, the gradient in floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from warpkit.attacks.jpeg_files import check_quality, encode_and_decode, stand_in
from warpkit.attacks.processors.program import processor_steps
from warpkit.attacks.steps import (
    Pictures,
    Rounding,
    Step,
    check_gradient,
    check_made,
    check_pictures,
    photographed,
)
from warpkit.core import checks
from warpkit.gradients.surrogates import warn_beyond_unit
from warpkit.types import Library, Subsampling


class Pipeline:
    """The preprocessing steps of the attacked program, from the image to the network's input.

    steps: callables on images (N, C, H, W), such as ``partial(warpkit.resize, size=(224, 224),
    arithmetic="pillow")``, a warp, a function of torchvision's, or `jpeg`, `normalize`,
    `reverse_channels`, `to_uint8`. Called with images (N, C, H, W), floats in [0, 1] or uint8, it
    returns the last step's result: floats, with 8 bits divided by 255.

    The value is the real program's, bit for bit: the images are rounded to 8 bits, and every step
    that takes 8 bits receives them from the previous step. The first step that takes only floats
    receives levels / 255, and the following ones floats, until `to_uint8`. The gradient is that of
    the same steps on floats, each at the real program's own values, straight through the rounding.

    The first call determines what each step takes, on a pattern of the images' shape. A step takes
    8 bits if it returns uint8 for uint8, or the same floats as for floats (it checks the type, as
    torchvision's presets do), or only converts them to floats (``x.float()``, ``x / 255``). If it
    raises or returns other floats, as ``(x - mean) / std`` does, it takes only floats. `on_uint8`
    and `on_floats` state it explicitly.

    Raises ValueError or TypeError, with the step, if it returns no tensor, another number of
    images, or a result without a gradient. A step's own exceptions are raised again with the step's
    name: TypeError and ValueError unchanged, others as RuntimeError. UserWarning: a step returns
    very different images for 8 bits and for floats (``x ** 3``), or nearly constant values for
    floats (it divides by 255 itself).

    >>> halve = Pipeline(lambda x: x // 2 if x.dtype == torch.uint8 else x / 2)
    >>> image = torch.tensor([[[[0.1, 0.5]]]], requires_grad=True)
    >>> (halve(image) * 255).round(), torch.autograd.grad(halve(image).sum(), image)[0]
    (tensor([[[[13., 64.]]]], grad_fn=<RoundBackward0>), tensor([[[[0.5000, 0.5000]]]]))
    """

    def __init__(self, *steps: Callable[[Tensor], Tensor]) -> None:
        for k, step in enumerate(steps):
            _function("Pipeline", f"steps[{k}]", step)
        self.steps = tuple(map(as_step, steps))

    @classmethod
    def from_processor(cls, source: Any, *, library: Library | None = None) -> Pipeline:
        """The pipeline of an image processor: its numbers, with gradients.

        source: a preprocessor_config.json of transformers (its path, its folder's, or its dict), an
        image processor of transformers, or timm's pretrained_cfg or open_clip's preprocess_cfg. For
        images (N, 3, H, W) of one size the pipeline returns the processor's `pixel_values`, within
        1e-5: (N, 3, h, w), or for kinds that return patches (N, patches, D), the processor's own
        rows; for kinds that take a video, of one frame. docs/processors.md lists the kinds.

        library: "pillow" or "torchvision", which resizes. None is the processor object's own; for a
        configuration torchvision, as in transformers 5 (a file does not say which), and for timm,
        open_clip and kinds without torchvision Pillow. A kind without a Pillow version runs its
        steps with Pillow's resize. Missing keys of a configuration have the defaults of its class;
        null is off. transformers, timm and open_clip are not imported.

        Raises ValueError for an unsupported kind (tiles, pairs, ...) with the reason, for no kind
        at all, and for a required option that is null; OSError if the file does not exist.

        >>> vit = {"image_processor_type": "ViTImageProcessor", "size": {"height": 2, "width": 2}}
        >>> pipeline = Pipeline.from_processor(vit)
        >>> pipeline(torch.ones(1, 3, 5, 7)).shape, pipeline(torch.zeros(1, 3, 5, 7)).unique()
        (torch.Size([1, 3, 2, 2]), tensor([-1.]))
        """
        return cls(*processor_steps(source, library))

    def __repr__(self) -> str:
        return f"Pipeline({', '.join(map(repr, self.steps))})"

    def __call__(self, images: Tensor) -> Tensor:
        """The program's result for images (N, C, H, W)."""
        if check_pictures("Pipeline", images).ndim != 4:
            wanted = "of shape (N, C, H, W)"
            checks.fail("Pipeline", "images", wanted, checks.shape_of(images))
        checks.check_held("Pipeline", "images", images)
        if images.is_floating_point():
            warn_beyond_unit("Pipeline", images)
        pictures = photographed("Pipeline", images)
        for number, step in enumerate(self.steps, 1):
            pictures = _run(step, f"Pipeline: step {number} ({step})", pictures)
        return pictures.values


def _run(step: Step, place: str, given: Pictures) -> Pictures:
    """The step's result; its exceptions get its name, except out-of-memory errors."""
    try:
        return step.run(place, given)
    except (Warning, torch.OutOfMemoryError):
        raise
    except Exception as error:
        if str(error).startswith(place):
            raise
        kinds = (kind for kind in (TypeError, ValueError) if isinstance(error, kind))
        kind = next(kinds, RuntimeError)
        raise kind(f"{place} raises {type(error).__name__}: {error}") from error


def on_uint8(
    step: Callable[[Tensor], Tensor], surrogate: Callable[[Tensor], Tensor] | None = None
) -> Step:
    """A step of a `Pipeline` that takes uint8, with a surrogate for the gradient.

    step: a function of uint8 images (N, C, H, W) that returns uint8, or the program's floats: it
    may leave torch, and needs no gradient. surrogate: a function of floats in [0, 1] that returns
    the same shape and the same values (floats in [0, 1] for uint8); None is the step itself, on
    floats.

    >>> posterize = on_uint8(lambda x: x // 64 * 64, lambda x: x)
    >>> posterize(torch.tensor([[[[0.3, 1.0]]]])) * 255
    tensor([[[[ 64., 192.]]]])
    """
    return Step(
        _function("on_uint8", "step", step),
        "uint8",
        surrogate and _function("on_uint8", "surrogate", surrogate),
    )


def on_floats(step: Callable[[Tensor], Tensor]) -> Step:
    """A step of a `Pipeline` that takes floats, 8 bits divided by 255.

    step: a differentiable function of floats (N, C, H, W). A `Pipeline` determines what most steps
    take; use this for one that would also run on uint8, with another meaning.

    >>> negative = Pipeline(on_floats(lambda x: 1 - x))
    >>> negative(torch.tensor([[[[0.0, 1.0]]]]))
    tensor([[[[1., 0.]]]])
    """
    return Step(_function("on_floats", "step", step), "floats")


def normalize(mean: Sequence[float], std: Sequence[float]) -> Step:
    """A step of a `Pipeline`: (x - mean) / std per channel, on floats, as in torchvision.

    mean and std: a number for each channel, or one for all; std not 0. Raises ValueError or
    TypeError for anything else.

    >>> normalize([0.5], [0.25])(torch.tensor([[[[0.0, 1.0]]]]))
    tensor([[[[-2.,  2.]]]])
    """
    name = "normalize"
    centre, spread = (
        checks.as_float(name, argument, value, torch.device("cpu"), torch.float64).flatten()
        for argument, value in (("mean", mean), ("std", std))
    )
    for argument, numbers in (("mean", centre), ("std", spread)):
        checks.check_held(name, argument, numbers)
    if len(centre) == 0 or not bool(centre.isfinite().all()):
        checks.fail(name, "mean", "finite numbers, one for each channel", repr(mean))
    if len(spread) not in (1, len(centre)) or not bool((spread.isfinite() & (spread > 0)).all()):
        checks.fail(name, "std", "positive numbers, as many as `mean` has", repr(std))
    return Step(partial(_normalized, centre=centre, spread=spread), "floats", said=name)


def _normalized(images: Tensor, centre: Tensor, spread: Tensor) -> Tensor:
    """images (N, C, H, W); centre and spread (C,) or (1,)."""
    if len(centre) not in (1, images.shape[-3]):
        got = f"images of {images.shape[-3]} channels"
        checks.fail("normalize", "mean", f"for images of {len(centre)} channels", got)
    columns = (part.to(images)[:, None, None] for part in (centre, spread))
    return (images - next(columns)) / next(columns)


def jpeg(quality: int = 75, *, subsampling: Subsampling = "4:2:0") -> Step:
    """A step of a `Pipeline`: JPEG compression by Pillow.

    quality: an integer from 1 to 100; subsampling of the colours: "4:2:0", "4:2:2" or "4:4:4". For
    images (N, 3, H, W) or, grey, (N, 1, H, W) the value is that of PIL.Image.save(quality=quality,
    subsampling=subsampling) and PIL.Image.open, bit for bit. The gradient is that of the same steps
    in torch, straight through the rounding of the coefficients. Raises ImportError if Pillow is not
    installed, otherwise ValueError or TypeError.

    >>> grey = torch.full((1, 3, 8, 8), 0.5)
    >>> jpeg(90)(grey)[0, :, 0, 0] * 255
    tensor([128., 128., 128.])
    """
    quality, subsampling = check_quality("jpeg", quality, subsampling)
    options = {"quality": quality, "subsampling": subsampling}
    real, smooth = partial(encode_and_decode, **options), partial(stand_in, **options)
    return Step(real, "uint8", smooth, f"jpeg({quality})")


def reverse_channels(images: Tensor) -> Tensor:
    """A step of a `Pipeline`: converts RGB to BGR, and vice versa; (..., C, H, W).

    >>> reverse_channels(torch.tensor([1.0, 2.0, 3.0])[:, None, None]).flatten()
    tensor([3., 2., 1.])
    """
    return checks.check_image("reverse_channels", "images", images, labels=True).flip(-3)


def to_uint8(images: Tensor) -> Tensor:
    """A step of a `Pipeline`: converts floats back to 8 bits, with gradient 1.

    images (N, C, H, W): floats in [0, 1] are rounded half to even and saturated, and the following
    steps of a `Pipeline` receive uint8; uint8 is unchanged.

    >>> to_uint8(torch.tensor([[[[0.499, 1.1]]]])) * 255
    tensor([[[[127., 255.]]]])
    """
    if check_pictures("to_uint8", images).dtype == torch.uint8:
        return images
    return photographed("to_uint8", images).values


def check_pipeline(name: str, pipeline: Any) -> Callable[[Tensor], Tensor] | None:
    """`pipeline` must be None, a `Pipeline`, or another function of images."""
    wanted = "None, a Pipeline, or a function of images (N, C, h, w)"
    return None if pipeline is None else _function(name, "pipeline", pipeline, wanted)


def through(name: str, pipeline: Callable[[Tensor], Tensor], views: Tensor) -> Tensor:
    """The result of a pipeline for views (N, C, H, W), checked."""
    made = pipeline(views)
    if not isinstance(pipeline, Pipeline):
        check_made(f"{name}: `pipeline`", made, views)
        check_gradient(f"{name}: `pipeline`", made, views)
    return made


def as_step(function: Callable[[Tensor], Tensor]) -> Step:
    """A function of images as a step."""
    if function is to_uint8:
        return Rounding()
    return function if isinstance(function, Step) else Step(function)


def _function(name: str, argument: str, value: Any, wanted: str = "a function of images") -> Any:
    """`value` must be a function or another callable object, not the class of one."""
    if not callable(value) or isinstance(value, type):
        got = checks.kind_of(value) if isinstance(value, type) else repr(value)
        checks.fail(name, argument, wanted, got, TypeError)
    return value
