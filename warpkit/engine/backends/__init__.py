"""Which backend serves which call.

A backend is a module with `warp`, `sample` and `why_not`, the same in each, and an `inverse_map` of
its own if it has a faster one, and a `warp_forward`, of a matrix source -> destination, if that
saves the inverse. It is imported on first use. One that is asked for by name is used
or refused with its reasons, never replaced. OpenCV's arithmetics are the reference's in a module of
their own.
"""

from __future__ import annotations

from types import ModuleType

from torch import Tensor

from warpkit.core.checks import fail
from warpkit.engine.sampling.rules import Rule

BACKENDS = ("reference", "grid_sample", "cpu", "cuda")
"""All of them give the same answer, within the tolerance table; speed and reach differ."""

PREFERENCE = ("cpu", "cuda", "reference")
"""The order in which "auto" asks. grid_sample is not asked: its grid loses digits in float32."""

OPENCV = {"reference": "opencv", "cpu": "cpu_opencv"}
"""The backends that also compute OpenCV's pixels, and the module of each that does."""


def choose(function: str, backend: str, image: Tensor, rule: Rule) -> ModuleType:
    """The backend's module, or an error with the reasons of every refusal."""
    refused = {}
    for name in PREFERENCE if backend == "auto" else (backend,):
        exact = rule.arithmetic == "exact"
        module = load(name if exact else OPENCV.get(name, name))
        refused[name] = module.why_not(image, rule)
        if not exact and name not in OPENCV:
            refused[name].append(f"has no arithmetic {rule.arithmetic!r}")
        if not refused[name]:
            return module
    reasons = "\n".join(f"  {name}: {reason}" for name in refused for reason in refused[name])
    fail(function, "backend", "one that can do this", f"{backend!r}:\n{reasons}")


def load(name: str) -> ModuleType:
    """The module of a backend or an arithmetic, by a plain import.

    Not by importlib's function, which Dynamo cannot trace.
    """
    if name == "reference":
        from warpkit.engine.sampling import reference as module
    elif name == "opencv":
        from warpkit.engine.arithmetic import opencv as module
    elif name == "cpu_opencv":
        from warpkit.engine.backends.cpu import opencv as module
    elif name == "cpu":
        from warpkit.engine.backends import cpu as module
    elif name == "cuda":
        from warpkit.engine.backends import cuda as module
    else:
        from warpkit.engine.backends import grid_sample as module
    return module
