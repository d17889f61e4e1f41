"""Turns a processor's steps into pipeline steps: 8 bits give the value, floats the gradient."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from warpkit.attacks.pictures import Picture, Pictures, carry, each, unit
from warpkit.attacks.pipeline_steps import Step, name_of
from warpkit.attacks.processors import other_libraries
from warpkit.attacks.processors.calls import Call
from warpkit.attacks.processors.configuration import NAME, complete, kind_of
from warpkit.attacks.processors.kinds import KINDS, STANDARD
from warpkit.attacks.processors.operations import Operation, levels, pad
from warpkit.attacks.processors.outputs import PIXELS, Output, Pixels, padded, stacked
from warpkit.attacks.processors.sampling import filter_name
from warpkit.attacks.processors.sizes import Options, Size
from warpkit.attacks.processors.sources import read
from warpkit.core import checks

LIBRARIES = ("pillow", "torchvision")


class ProcessorStep(Step):
    """An operation: uint8 gives the value, and the same levels as floats give the gradient."""

    def __init__(self, operation: Operation, options: Options, label: str = "") -> None:
        function = partial(operation, **{"options": options})
        super().__init__(function, "uint8", label=label or name_of(operation))
        self.needs_uint8 = False

    def run(self, place: str, pictures: Pictures) -> Pictures:
        """As in `Step`."""
        (picture,) = each(pictures)
        if picture.levels is None:
            return Picture(None, self._of_floats_alone(picture.values))
        with torch.no_grad():
            result = self.function(picture.levels)
        surrogate = None
        if picture.can_differentiate:
            surrogate = self._of_floats_alone(picture.values * 255)
        if result.dtype == torch.uint8:
            surrogate = None if surrogate is None else surrogate / 255
            return Picture(result, dtype=picture.dtype, surrogate=surrogate)
        value = unit(result, picture.dtype)
        return Picture(None, value if surrogate is None else carry(value, surrogate))

    def _of_floats_alone(self, values: Tensor) -> Tensor:
        """The operation on floats (N, C, H, W), in float32 if it supports no other type."""
        try:
            return self.function(values)
        except TypeError:  # Pillow's arithmetic has no float64 and no float16
            if values.dtype == torch.float32:
                raise
            return self.function(values.float()).to(values.dtype)


def compose(picture: Tensor, options: Options, operations: tuple[Operation, ...]) -> Tensor:
    """Operations on (N, C, H, W), one after the other."""
    for operation in operations:
        picture = operation(picture, options)
    return picture


class Processor:
    """A processor: a program for each of its pixel tensors, and what it returns for a call."""

    def __init__(
        self,
        programs: Mapping[str, tuple[Operation, ...]],
        options: Options,
        outputs: tuple[Output, ...] = (stacked,),
        of_call: Callable[[Sequence[Size]], Options] | None = None,
        has_prompts: bool = False,
    ) -> None:
        """of_call: the options that depend on all images of a call. has_prompts: whether the
        outputs depend on which images are of one prompt."""
        self.programs, self.options, self._outputs = programs, options, outputs
        self._of_call, self.has_prompts = of_call, has_prompts

    def steps(self) -> tuple[Step, ...]:
        """The steps to `pixel_values`, one for each operation."""
        operations = (*self.programs[PIXELS], levels)
        return tuple(ProcessorStep(operation, self.options) for operation in operations)

    def program(self, key: str, **more: Any) -> Step:
        """A program as one step, which passes over pixels less often; `more`: options of one call.

        The operations are affine, but for `clamp` and `gray`, which no 8 bits precede: the
        gradient is that of the steps one by one.
        """
        operation = partial(compose, operations=(*self.programs[key], levels))
        return ProcessorStep(operation, {**self.options, **more}, self.options["name"])

    def of_call(self, call: Call) -> Options:
        """The options that depend on the images of a call."""
        return self._of_call(call.sizes) if self._of_call else {}

    def outputs(self, pixels: Pixels, call: Call) -> dict[str, Any]:
        """What the processor returns for a call, by its own names.

        pixels: the result of each program for each image, without a batch axis.
        """
        options, results = {**self.options, **self.of_call(call)}, {}
        for output in self._outputs:
            results.update(output(pixels, call, options))
        return results


def processor_of(source: Any, library: str | None) -> Processor:
    """A processor, from its configuration and the library that resizes."""
    if library is not None:
        checks.check_name(NAME, "library", library, LIBRARIES)
    config, has = read(source)
    other = other_libraries.read(config)
    if other is None:
        processor = _of_kind(config, library, has)
    else:
        operations, options = other(library or "pillow")
        processor = Processor({PIXELS: operations}, {**options, "name": "it"})
    filter_name(processor.options)
    return processor


def _of_kind(config: Mapping[str, Any], library: str | None, has: str | None) -> Processor:
    name = kind_of(config)
    kind = KINDS[name]
    only = kind.get("library")
    if library not in (None, only or library):
        checks.fail(NAME, "library", f"None or {only!r} for {name}, which has no other", library)
    resizes: str = only or library or has or "torchvision"
    options = {**complete(name, config, resizes), "name": name}
    programs = {
        key: steps[resizes] if isinstance(steps, Mapping) else steps
        for key, steps in {PIXELS: kind.get("steps", STANDARD), **kind.get("also", {})}.items()
    }
    outputs = kind.get("outputs", (padded,) if pad in programs[PIXELS] else (stacked,))
    return Processor(programs, options, outputs, kind.get("of_call"), kind.get("prompts", False))
