"""A driver for Triton without a device: kernels are specialized and compiled, but not run."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import triton
import triton.compiler
from torch.utils._python_dispatch import TorchDispatchMode
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

CUOBJDUMP = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
"""It comes with Triton on x86-64 and aarch64."""


class Trace:
    """What calls did."""

    def __init__(self) -> None:
        self.compiled: list[tuple[str, bytes]] = []
        """Kernels, by name, and their machine code."""
        self.variants: Counter[str] = Counter()
        """By kernel, also those that were not compiled."""
        self.launches: list[str] = []
        self.operations: Counter[str] = Counter()
        """Of torch, without views and empty tensors."""


class Stub:
    """A driver for Triton."""

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)


class Kernel:
    """Stands for a kernel on a device."""

    function, packed_metadata = 0, ()

    def __init__(self, launched: Callable[[], None]) -> None:
        self.launched = launched

    def launch_metadata(self, *_: Any) -> None: ...

    def run(self, *_: Any) -> None:
        self.launched()


class Operations(TorchDispatchMode):
    """Counts torch's operations on a device; views and empty tensors take none."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self.trace = trace

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if not (func.is_view or name.startswith(("empty", "new_empty"))):
            self.trace.operations[name] += 1
        return result


def forget() -> None:
    """Compile all kernels again when they are launched."""
    for name, module in list(sys.modules.items()):
        if name.startswith("warpkit.engine.triton."):
            for value in vars(module).values():
                if isinstance(value, JITFunction):
                    value.device_caches.clear()


@contextmanager
def stub_driver(*, compiles: bool) -> Iterator[Trace]:
    """A trace of calls with tensors on `meta`; compiles: whether kernels are really compiled."""
    trace, compile, before = Trace(), triton.compiler.compile, dict(vars(driver))

    def compiled(source: Any, **options: Any) -> Any:
        name = source.fn.__name__
        trace.variants[name] += 1
        assert source.fn.cache_key  # Triton notes the globals, which may not change: NaN would
        if compiles:
            trace.compiled.append((name, compile(source, **options).asm["cubin"]))
        return Kernel(lambda: trace.launches.append(name))

    forget()
    driver.set_active(Stub())  # pyright: ignore
    triton.compiler.compile = compiled
    try:
        with Operations(trace):
            yield trace
    finally:
        triton.compiler.compile = compile
        vars(driver).update(before)
        forget()


class Instruction(NamedTuple):
    """An instruction of a kernel."""

    name: str
    """Without what follows a point."""
    depth: int
    """The number of loops that it lies in."""

    @property
    def is_double(self) -> bool:
        """Whether it computes or converts float64."""
        name = self.name.split(".")[0]
        return name in ("DADD", "DMUL", "DFMA", "DSETP", "DMNMX") or "F64" in self.name


def instructions_of(cubin: bytes) -> list[Instruction]:
    """A kernel's instructions for sm_90, without the padding at its end."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(CUOBJDUMP), "-sass", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"/\*([0-9a-f]{4,})\*/ +(?:@!?U?P\w+ +)?([A-Z][A-Z0-9_.]*)(.*?);", text)
    places = {int(place, 16): n for n, (place, _, _) in enumerate(found)}
    depths = [0] * len(found)
    end = len(found)
    for n, (_, name, arguments) in enumerate(found):
        target = re.findall(r"0x([0-9a-f]+)", arguments)
        if name.startswith("BRA") and target:
            to = places.get(int(target[-1], 16), n + 1)
            if to == n:  # an endless loop: padding follows
                end = n
                break
            for inside in range(to, n + 1):
                depths[inside] += 1
    return [
        Instruction(name.split(".")[0] if "F64" not in name else name, depth)
        for (_, name, _), depth in zip(found[:end], depths, strict=False)
    ]
