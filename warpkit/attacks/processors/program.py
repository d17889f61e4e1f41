"""Turns a processor's steps into pipeline steps: 8 bits give the value, floats the gradient."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from warpkit.attacks.pictures import Picture, Pictures, carry, each, unit
from warpkit.attacks.processors import other_libraries
from warpkit.attacks.processors.configuration import NAME, complete, kind_of
from warpkit.attacks.processors.kinds import KINDS, STANDARD
from warpkit.attacks.processors.operations import Operation, levels
from warpkit.attacks.processors.sampling import filter_name
from warpkit.attacks.processors.sizes import Options
from warpkit.attacks.processors.sources import read
from warpkit.attacks.steps import Step, name_of
from warpkit.core import checks, tracing

LIBRARIES = ("pillow", "torchvision")


class ProcessorStep(Step):
    """An operation: uint8 gives the value, and the same levels as floats give the gradient."""

    def __init__(self, operation: Operation, options: Options) -> None:
        function = partial(operation, **{"options": options})
        super().__init__(function, "uint8", said=name_of(operation))
        self.needs_uint8 = False

    def run(self, place: str, given: Pictures) -> Pictures:
        """As in `Step`."""
        (picture,) = each(given)
        if picture.levels is None:
            return Picture(None, self._of_floats_alone(picture.values))
        with torch.no_grad():
            made = self.function(picture.levels)
        surrogate = None
        if tracing.can_differentiate():
            surrogate = self._of_floats_alone(picture.values * 255)
        if made.dtype == torch.uint8:
            surrogate = None if surrogate is None else surrogate / 255
            return Picture(made, dtype=picture.dtype, surrogate=surrogate)
        value = unit(made, picture.dtype)
        return Picture(None, value if surrogate is None else carry(value, surrogate))

    def _of_floats_alone(self, values: Tensor) -> Tensor:
        """The operation on floats (N, C, H, W), in float32 if it supports no other type."""
        try:
            return self.function(values)
        except TypeError:  # Pillow's arithmetic has no float64 and no float16
            if values.dtype == torch.float32:
                raise
            return self.function(values.float()).to(values.dtype)


def processor_steps(source: Any, library: str | None) -> tuple[Step, ...]:
    """The steps of a processor, from its configuration and the library that resizes."""
    if library is not None:
        checks.check_name(NAME, "library", library, LIBRARIES)
    config, has = read(source)
    other = other_libraries.read(config)
    if other is not None:
        operations, options = other(library or "pillow")
    else:
        operations, options = _of_kind(config, library, has)
    filter_name(options)
    return tuple(ProcessorStep(operation, options) for operation in (*operations, levels))


def _of_kind(
    config: Mapping[str, Any], library: str | None, has: str | None
) -> tuple[tuple[Operation, ...], Options]:
    name = kind_of(config)
    only = KINDS[name].get("library")
    if library not in (None, only or library):
        checks.fail(NAME, "library", f"None or {only!r} for {name}, which has no other", library)
    resizes: str = only or library or has or "torchvision"
    steps = KINDS[name].get("steps", STANDARD)
    options = complete(name, config, resizes)
    return (steps[resizes] if isinstance(steps, Mapping) else steps), options
