"""Calls of the fuzz tables with tensors on the CPU, while torch's default device is another one.

`python -m tests.support.another_device tests.fuzz.test_images` compares each call under
`torch.device("meta")` with the same call outside. It prints every name first: a kernel that gets an
address of another device ends the process.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from tests.support.argument_kinds import parts, same
from tests.support.fuzzing import Case, fuzz, gradients, leaves

EXAMPLES = 12
DRAWS = "torchvision draws on torch's default device, and meta has no numbers"
ELSEWHERE = {
    "SpatialTransformer": "a layer that is made there has its weights there",
    "RandomAffine": DRAWS,
    "RandomRotation": DRAWS,
    "RandomPerspective": DRAWS,
    "RandomResizedCrop": DRAWS,
    "ElasticTransform": DRAWS,
    "RandomHorizontalFlip": DRAWS,
    "RandomVerticalFlip": DRAWS,
    "Fused": DRAWS,
}
"""Cases without a result on another device; tests/core/test_default_device.py calls them."""


def cases_of(module: ModuleType) -> dict[str, Case]:
    """The cases of all tables of a module that have a result on another device."""
    cases = {}
    for name, value in vars(module).items():
        if isinstance(value, Case):
            cases[name.lower()] = value
        elif isinstance(value, dict):
            cases |= {f"{name} {k}": v for k, v in value.items() if isinstance(v, Case)}
    return {name: case for name, case in cases.items() if name.split()[-1] not in ELSEWHERE}


def outcome(case: Case, values: dict[str, Any]) -> list[Any]:
    """The parts of a result and its gradients; or the type and the text of an error."""
    torch.manual_seed(0)
    mine = leaves(values)
    for generator in parts(mine):
        if isinstance(generator, torch.Generator):
            generator.manual_seed(1)
    try:
        result = case.function(**mine)
    except Exception as error:
        return [type(error).__name__, str(error)]
    return [*parts(result), *parts(gradients(result, mine))]


def equal(one: Any, other: Any, free: bool) -> bool:
    """Whether parts of results are equal, and on one device; free: the second may be on meta."""
    if isinstance(one, Tensor) and isinstance(other, Tensor) and one.device != other.device:
        return free and other.is_meta and (one.shape, one.dtype) == (other.shape, other.dtype)
    return same(one, other)


def check(name: str, case: Case, values: dict[str, Any]) -> None:
    """The same result and gradients, on the same device, under another default device."""
    expected = outcome(case, values)
    with torch.device("meta"):
        results = outcome(case, values)
    # as with torch, what is made of numbers and arrays alone is on the default device
    free = not any(isinstance(value, Tensor) for value in parts(values))
    assert len(expected) == len(results), (expected, results)
    for one, other in zip(expected, results, strict=True):
        assert equal(one, other, free), (expected, results)


def main(module: str) -> None:
    """Exit with the failures."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    failed = []
    for name, case in cases_of(importlib.import_module(module)).items():
        print(name, flush=True)
        try:
            fuzz(name, case, check, least=EXAMPLES)
        except Exception as error:
            failed.append(f"{name}: {type(error).__name__}: {str(error)[:900]}\n")
    sys.exit("\n".join(failed) or None)


if __name__ == "__main__":
    main(sys.argv[1])
