"""Preprocessing pipelines: the value in 8 bits, the gradient in floats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from warpkit.attacks.albums import check_album
from warpkit.attacks.pictures import Picture, Pictures, check_pictures, photograph
from warpkit.attacks.pipeline_steps import (
    Rounding,
    Step,
    check_gradient,
    check_result,
    stops_recomputation,
    values_of,
)
from warpkit.attacks.processors.calls import Call
from warpkit.attacks.processors.operations import sides
from warpkit.attacks.processors.program import Processor, processor_of
from warpkit.attacks.processors.sizes import Size
from warpkit.core import checks
from warpkit.types import Library

A_STEP = "a function of images"


class Pipeline:
    """The preprocessing steps of the attacked program, from the image to the network's input.

    steps: callables on images (N, C, H, W), such as ``partial(warpkit.resize, size=(224, 224),
    arithmetic="pillow")``, a warp, a function of torchvision's, or `jpeg`, `normalize`,
    `reverse_channels`, `to_uint8`, or another Pipeline. A step may return a tuple of images, which
    the next one takes as arguments. The last step may be a dict of steps: several ends, such as the
    sizes of a pyramid, for which the steps before run once. Called with images (N, C, H, W), floats
    in [0, 1] or uint8, it returns the last step's result, floats, with 8 bits divided by 255: a
    tensor, a tuple, or a dict with the keys of the ends.

    The value is the real program's, bit for bit: the images are rounded to 8 bits, and every step
    that takes 8 bits receives them from the previous step. The first step that takes only floats
    receives levels / 255, and the following ones floats, until `to_uint8`. The gradient is that of
    the same steps on floats, each at the real program's own values, straight through the rounding.

    The first call determines what each step takes, on a pattern of the images' shape. A step takes
    8 bits if it returns uint8 for uint8, or the same floats as for floats (it checks the type, as
    torchvision's presets do), or only converts them to floats (``x.float()``, ``x / 255``), or
    expects the numbers of 8 bits (``x / 127.5 - 1``: its gradient is that on floats in [0, 255]).
    If it raises or returns other floats, as ``(x - mean) / std`` does, it takes only floats.
    `on_uint8` and `on_floats` state it explicitly.

    Raises ValueError or TypeError, with the step, if it returns no tensor, another number of
    images, or a result without a gradient. A step's own exceptions are raised again with the step's
    name: TypeError and ValueError unchanged, others as RuntimeError. UserWarning: a step returns
    very different images for 8 bits and for floats (``x ** 3``), or nearly constant values for
    floats, and others for 8 bits than for the same numbers as floats.

    >>> halve = Pipeline(lambda x: x // 2 if x.dtype == torch.uint8 else x / 2)
    >>> image = torch.tensor([[[[0.1, 0.5]]]], requires_grad=True)
    >>> (halve(image) * 255).round(), torch.autograd.grad(halve(image).sum(), image)[0]
    (tensor([[[[13., 64.]]]], grad_fn=<RoundBackward0>), tensor([[[[0.5000, 0.5000]]]]))
    >>> ends = Pipeline(halve, {"as it is": lambda x: x, "mirrored": lambda x: x.flip(-1)})
    >>> {name: (found * 255).round().tolist() for name, found in ends(image.detach()).items()}
    {'as it is': [[[[13.0, 64.0]]]], 'mirrored': [[[[64.0, 13.0]]]]}
    """

    processor: Processor | None = None
    """Of `from_processor`: what its steps were made of."""

    def __init__(self, *steps: Callable[..., Any] | Mapping[Any, Any]) -> None:
        for k, step in enumerate(steps):
            if not isinstance(step, Mapping):
                _function("Pipeline", f"steps[{k}]", step)
            split = isinstance(step, Mapping) or (isinstance(step, Pipeline) and step.ends)
            if split and k < len(steps) - 1:
                wanted = f"{A_STEP}: only the last step may have several ends"
                checks.fail("Pipeline", f"steps[{k}]", wanted, f"{step!r:.60}", TypeError)
        self.steps = tuple(as_step(f"steps[{k}]", step) for k, step in enumerate(steps))

    @property
    def ends(self) -> tuple[Any, ...]:
        """The keys of its result, if that is a dict; otherwise ()."""
        last = self.steps[-1] if self.steps else None
        return last.ends if isinstance(last, Pipeline | Ends) else ()

    @classmethod
    def from_processor(cls, source: Any, *, library: Library | None = None) -> Pipeline:
        """The pipeline of an image processor: its numbers, with gradients.

        source: a preprocessor_config.json of transformers (its path, its folder's, or its dict), an
        image processor of transformers, or timm's pretrained_cfg or open_clip's preprocess_cfg. For
        images (N, 3, H, W), or a list of (3, H_i, W_i), the pipeline returns each image's
        `pixel_values`, within 1e-5: (3, h, w), tiles (tiles, 3, h, w) or rows of patches
        (patches, D), stacked or as a list; for kinds that take a video, of one frame. `outputs`
        returns everything that the processor returns. docs/processors.md lists the kinds.

        library: "pillow" or "torchvision", which resizes. None is the processor object's own; for a
        configuration torchvision, as in transformers 5 (a file does not say which), and for timm,
        open_clip and kinds without torchvision Pillow. A kind without a Pillow version runs its
        steps with Pillow's resize. Missing keys of a configuration have the defaults of its class;
        null is off. transformers, timm and open_clip are not imported.

        Raises ValueError for an unsupported kind (pairs, ...) with the reason, for no kind
        at all, and for a required option that is null; OSError if the file does not exist.

        >>> vit = {"image_processor_type": "ViTImageProcessor", "size": {"height": 2, "width": 2}}
        >>> pipeline = Pipeline.from_processor(vit)
        >>> pipeline(torch.ones(1, 3, 5, 7)).shape, pipeline(torch.zeros(1, 3, 5, 7)).unique()
        (torch.Size([1, 3, 2, 2]), tensor([-1.]))
        """
        processor = processor_of(source, library)
        pipeline = cls(*processor.steps())
        pipeline.processor = processor
        return pipeline

    def __repr__(self) -> str:
        return f"Pipeline({', '.join(map(repr, self.steps))})"

    def __call__(self, images: Tensor | Sequence[Any]) -> Any:
        """The program's result for images (N, C, H, W); a list for a list of (C, H_i, W_i)."""
        if isinstance(images, checks.LISTS):
            return self._of_list(images)
        batch = check_pictures("Pipeline", images)
        if batch.ndim != 4:
            wanted = "of shape (N, C, H, W), or a list of (C, H, W)"
            checks.fail("Pipeline", "images", wanted, checks.shape_of(batch))
        checks.check_held("Pipeline", "images", batch)
        return _values(self.run("Pipeline", photograph("Pipeline", batch, warns=True)))

    def _of_list(self, images: Sequence[Any]) -> list[Any]:
        """The result of each image alone, without its batch axis; images of one size share it."""
        processor = self._to_processor()[1]
        album = check_album("Pipeline", images, processor is not None and processor.has_prompts)
        results: dict[int, Any] = {}
        for group in album.groups():
            values = _values(self.run("Pipeline", group.photographed("Pipeline")))
            results.update((at, _part(values, k)) for k, at in enumerate(group.at))
        return album.nested([results[at] for at in range(len(results))])

    def outputs(self, images: Tensor | Sequence[Any]) -> dict[str, Any]:
        """Everything that the pipeline's processor returns for these images in one call.

        images: as for the pipeline: (N, C, H, W), or a list of (C, H_i, W_i); for processors that
        distinguish prompts (docs/processors.md) also a list of lists, the images of each prompt.

        It is ``processor(images, return_tensors="pt")``: the same keys, shapes, types of integers
        and, within 1e-5, values, packed and padded for the whole call. Pixels have the gradient and
        the images' type of floats; grids, sizes and masks depend on the images' sizes alone. Pixels
        of unequal shapes are a list. Steps before the processor run on each image.

        Raises ValueError if the last step is no processor, for an empty list, for one image without
        a batch axis, for sizes that the processor refuses, and for a list of lists if the processor
        has no prompts.

        >>> qwen = Pipeline.from_processor({"image_processor_type": "Qwen2VLImageProcessor"})
        >>> result = qwen.outputs([torch.ones(3, 56, 84), torch.ones(3, 112, 56)])
        >>> result["pixel_values"].shape, result["image_grid_thw"].tolist()
        (torch.Size([56, 1176]), [[1, 4, 6], [1, 8, 4]])
        """
        name = "Pipeline.outputs"
        before, processor = self._to_processor()
        if processor is None:
            wanted = "that of an image processor (Pipeline.from_processor)"
            checks.fail(name, "the last step", wanted, f"{(self.steps or ('none',))[-1]}")
        album = check_album(name, images, processor.has_prompts)
        groups, start = album.groups(), Pipeline(*before)
        pictures: list[Picture] = []
        sizes: dict[int, Size] = {}
        for group in groups:
            picture = start.run(name, group.photographed(name))
            if not isinstance(picture, Picture):
                wanted = "steps that return one batch of images"
                checks.fail(name, "before the processor", wanted, type(picture).__name__)
            pictures.append(picture)
            sizes.update(dict.fromkeys(group.at, sides(picture.real)))
        order = range(len(sizes))
        call = Call(tuple(sizes[at] for at in order), album.prompts, album.device)
        pixels, options = {}, processor.of_call(call)
        for key in processor.programs:
            parts: dict[int, Tensor] = {}
            for group, picture in zip(groups, pictures, strict=True):
                program = processor.program(key, **options, neighbours=group.neighbours)
                values = _values(_run(program, f"{name}: the processor", picture))
                parts.update(zip(group.at, values.unbind(), strict=True))
            pixels[key] = [parts[at] for at in order]
        return processor.outputs(pixels, call)

    def _to_processor(self) -> tuple[tuple[Any, ...], Processor | None]:
        """The steps before the processor at the end, and this processor, if there is one."""
        if self.processor is not None:
            return (), self.processor
        last = self.steps[-1] if self.steps else None
        if not isinstance(last, Pipeline):
            return (), None
        before, processor = last._to_processor()
        return (*self.steps[:-1], *before), processor

    def run(self, place: str, pictures: Pictures) -> StepResult:
        """The pictures after the last step; `place` is the pipeline's name in errors."""
        result: StepResult = pictures
        for number, step in enumerate(self.steps, 1):
            assert not isinstance(result, dict)
            at = f"{place}: step {number}"
            if isinstance(step, Ends):
                result = {key: _run(end, f"{at}, end {key!r}", result) for key, end in step.items()}
            else:
                result = _run(step, at, result)
        return result


class Ends(dict[Any, "Step | Pipeline"]):
    """The last step of a pipeline with several results."""

    @property
    def ends(self) -> tuple[Any, ...]:
        return tuple(self)


StepResult = Pictures | dict[Any, "StepResult"]
"""What a pipeline makes: pictures, or those of each end."""


def _values(result: StepResult) -> Any:
    """What a pipeline returns: floats with the gradient, for each end."""
    if isinstance(result, dict):
        return {key: _values(end) for key, end in result.items()}
    return values_of(result)


def _part(values: Any, k: int) -> Any:
    """The k-th image of a result: a tensor (N, ...), a tuple, or a dict of ends."""
    if isinstance(values, dict):
        return {key: _part(end, k) for key, end in values.items()}
    return tuple(part[k] for part in values) if isinstance(values, tuple) else values[k]


def _run(step: Step | Pipeline, place: str, pictures: Pictures) -> StepResult:
    """The step's result; its exceptions get its name, except out-of-memory errors."""
    if isinstance(step, Pipeline):
        return step.run(place, pictures)
    place = f"{place} ({step})"
    try:
        return step.run(place, pictures)
    except (Warning, torch.OutOfMemoryError):
        raise
    except Exception as error:
        if str(error).startswith(place) or stops_recomputation(error):
            raise
        kinds = (kind for kind in (TypeError, ValueError) if isinstance(error, kind))
        kind = next(kinds, RuntimeError)
        raise kind(f"{place} raises {type(error).__name__}: {error}") from error


def on_uint8(step: Callable[..., Any], surrogate: Callable[..., Any] | None = None) -> Step:
    """A step of a `Pipeline` that takes uint8, with a surrogate for the gradient.

    step: a function of uint8 images (N, C, H, W) that returns uint8, or the program's floats: it
    may leave torch, and needs no gradient. surrogate: a function of floats in [0, 1] that returns
    the same shape and the same values (floats in [0, 1] for uint8); None is the step itself, on
    floats in [0, 1], or in [0, 255] if it then makes the same of floats as of 8 bits.

    >>> posterize = on_uint8(lambda x: x // 64 * 64, lambda x: x)
    >>> posterize(torch.tensor([[[[0.3, 1.0]]]])) * 255
    tensor([[[[ 64., 192.]]]])
    """
    return Step(
        _function("on_uint8", "step", step),
        "uint8",
        surrogate and _function("on_uint8", "surrogate", surrogate),
    )


def on_floats(step: Callable[..., Any]) -> Step:
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
    return Step(partial(_normalize, centre=centre, spread=spread), "floats", label=name)


def _normalize(images: Tensor, centre: Tensor, spread: Tensor) -> Tensor:
    """images (N, C, H, W); centre and spread (C,) or (1,)."""
    if len(centre) not in (1, images.shape[-3]):
        got = f"images of {images.shape[-3]} channels"
        checks.fail("normalize", "mean", f"for images of {len(centre)} channels", got)
    columns = (part.to(images)[:, None, None] for part in (centre, spread))
    return (images - next(columns)) / next(columns)


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
    return photograph("to_uint8", images).values


def check_pipeline(name: str, pipeline: Any) -> Callable[[Tensor], Any] | None:
    """`pipeline` must be None, a `Pipeline`, or another function of images."""
    wanted = "None, a Pipeline, or a function of images (N, C, h, w)"
    return None if pipeline is None else _function(name, "pipeline", pipeline, wanted)


def through(name: str, pipeline: Callable[[Tensor], Any], views: Tensor) -> Any:
    """The result of a pipeline for views (N, C, H, W), checked."""
    result = pipeline(views)
    if not isinstance(pipeline, Pipeline):
        parts = check_result(f"{name}: `pipeline`", result, [views])
        check_gradient(f"{name}: `pipeline`", parts, [views])
    return result


def as_step(argument: str, step: Any) -> Step | Pipeline | Any:
    """A function of images as a step; a dict of them as `Ends`."""
    if isinstance(step, Mapping):
        if not step:
            wanted = "a dict of steps, with at least one end"
            checks.fail("Pipeline", argument, wanted, "an empty one")
        for key, end in step.items():
            _function("Pipeline", f"{argument}[{key!r}]", end)
        return Ends({key: as_step(argument, end) for key, end in step.items()})
    if step is to_uint8:
        return Rounding()
    return step if isinstance(step, Step | Pipeline) else Step(step)


def _function(name: str, argument: str, value: Any, wanted: str = A_STEP) -> Any:
    """`value` must be a function or another callable object, not the class of one."""
    if not callable(value) or isinstance(value, type):
        got = checks.kind_of(value) if isinstance(value, type) else repr(value)
        checks.fail(name, argument, wanted, got, TypeError)
    return value
