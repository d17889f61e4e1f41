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
    """The steps of the attacked program, from the picture to what the network is given.

    steps: callables on images (N, C, H, W), such as ``partial(warpkit.resize, size=(224, 224),
    arithmetic="pillow")``, a warp, a function of torchvision's, or `jpeg`, `normalize`,
    `reverse_channels`, `to_uint8`. Called with images (N, C, H, W), floats in [0, 1] or uint8, it
    returns what the last step makes of them: floats, 8 bits divided by 255.

    The value is the real program's, bit for bit: the images are rounded to 8 bits, and every step
    that takes 8 bits is given them, as they come from the step before. The first that takes floats
    alone is given levels / 255, and those after it floats, until `to_uint8`. The gradient is that
    of the same steps on floats, each at the real program's own values, straight through rounding.

    What a step takes is found out at the first call, on a pattern of the images' shape. It takes 8
    bits if of uint8 it makes uint8, or floats like those that it makes of floats (it looks at the
    type, as torchvision's presets do), or only turns them into floats (``x.float()``, ``x / 255``).
    If it raises or makes other floats, as ``(x - mean) / std`` does, it takes floats alone.
    `on_uint8` and `on_floats` say it instead.

    Raises ValueError or TypeError, naming the step, where it returns no tensor, another number of
    images, or nothing that carries a gradient. What a step itself raises is raised again under the
    step's name: TypeError and ValueError as such, anything else as RuntimeError. UserWarning: a
    step makes very different images of 8 bits and of floats (``x ** 3``), or nearly one value of
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
        image processor of transformers, or timm's pretrained_cfg or open_clip's preprocess_cfg.
        Of images (N, 3, H, W) of one size the pipeline makes the processor's `pixel_values`, within
        1e-5: (N, 3, h, w), or of kinds that hand patches (N, patches, D), the processor's own rows;
        of kinds that take a video, of one frame. docs/processors.md has the kinds that are served.

        library: "pillow" or "torchvision", which resizes. None is the processor object's own; of a
        configuration torchvision's, as transformers 5 has it (a file never says which), and for
        timm, open_clip and kinds without another Pillow's. A kind that has no twin on Pillow does
        its steps with Pillow's resize. What a configuration leaves out is the default of its class;
        null is off. Neither transformers nor timm nor open_clip is imported.

        Raises ValueError for a kind that is not served (tiles, pairs, ...) with the reason, for no
        kind at all, and for an option that is needed and null; OSError for no such file.

        >>> vit = {"image_processor_type": "ViTImageProcessor", "size": {"height": 2, "width": 2}}
        >>> pipeline = Pipeline.from_processor(vit)
        >>> pipeline(torch.ones(1, 3, 5, 7)).shape, pipeline(torch.zeros(1, 3, 5, 7)).unique()
        (torch.Size([1, 3, 2, 2]), tensor([-1.]))
        """
        return cls(*processor_steps(source, library))

    def __repr__(self) -> str:
        return f"Pipeline({', '.join(map(repr, self.steps))})"

    def __call__(self, images: Tensor) -> Tensor:
        """What the program makes of images (N, C, H, W)."""
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
    """The step's result; what it raises has its place. Memory that ran out is another matter."""
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
    """A step of a `Pipeline` that is given uint8, with what stands for it in the gradient.

    step: a function of uint8 images (N, C, H, W) that returns uint8, or floats in the numbers that
    the program goes on with: it may leave torch, and needs no gradient. surrogate: a function of
    floats in [0, 1] that returns the same shape, in the same numbers (floats in [0, 1] for uint8);
    None is the step itself, on floats.

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
    """A step of a `Pipeline` that is given floats, 8 bits divided by 255.

    step: a differentiable function of floats (N, C, H, W). A `Pipeline` finds by itself what most
    steps take; this is for one that would also run on uint8, with another meaning.

    >>> negative = Pipeline(on_floats(lambda x: 1 - x))
    >>> negative(torch.tensor([[[[0.0, 1.0]]]]))
    tensor([[[[1., 0.]]]])
    """
    return Step(_function("on_floats", "step", step), "floats")


def normalize(mean: Sequence[float], std: Sequence[float]) -> Step:
    """A step of a `Pipeline`: (x - mean) / std of each channel, on floats, as torchvision's.

    mean and std: a number for each channel, or one for all; std not 0. Raises ValueError or
    TypeError for what is none.

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
    """A step of a `Pipeline`: saved as a JPEG file and read again, by Pillow.

    quality: an integer from 1 to 100; subsampling of the colours: "4:2:0", "4:2:2" or "4:4:4". Of
    images (N, 3, H, W) or, grey, (N, 1, H, W) the value is that of PIL.Image.save(quality=quality,
    subsampling=subsampling) and PIL.Image.open, bit for bit. The gradient is that of the same steps
    in torch, straight through the rounding of the coefficients. Raises ImportError where Pillow is
    not installed, ValueError or TypeError otherwise.

    >>> grey = torch.full((1, 3, 8, 8), 0.5)
    >>> jpeg(90)(grey)[0, :, 0, 0] * 255
    tensor([128., 128., 128.])
    """
    quality, subsampling = check_quality("jpeg", quality, subsampling)
    options = {"quality": quality, "subsampling": subsampling}
    real, smooth = partial(encode_and_decode, **options), partial(stand_in, **options)
    return Step(real, "uint8", smooth, f"jpeg({quality})")


def reverse_channels(images: Tensor) -> Tensor:
    """A step of a `Pipeline`: RGB becomes BGR, and the other way round; (..., C, H, W).

    >>> reverse_channels(torch.tensor([1.0, 2.0, 3.0])[:, None, None]).flatten()
    tensor([3., 2., 1.])
    """
    return checks.check_image("reverse_channels", "images", images, labels=True).flip(-3)


def to_uint8(images: Tensor) -> Tensor:
    """A step of a `Pipeline` that has worked on floats: 8 bits again, the gradient passes.

    images (N, C, H, W): floats in [0, 1] are rounded half to even and saturated, and the steps that
    follow in a `Pipeline` are given uint8; uint8 stays as it is.

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
    """What a pipeline makes of views (N, C, H, W), checked."""
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
