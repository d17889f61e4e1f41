"""The package names the device of every tensor that it makes, and decorates what it keeps."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from torch.utils._device import _device_constructors

import warpkit as wk

PACKAGE = Path(wk.__file__).parent
FILES = [p for p in sorted(PACKAGE.rglob("*.py")) if p.relative_to(PACKAGE).parts[0] != "cli"]
"""The command line is a process of its own, whose default device is the CPU."""
FACTORIES = {function.__name__ for function in _device_constructors()}
"""torch's functions that use the default device."""
AS_TORCHVISION = {("transforms/runs.py", "torch.rand(1)")}
"""torchvision draws on the default device, and the same seed gives its draws."""
CACHES = ("lru_cache", "cache")


def calls_of_torch(path: Path) -> Iterator[ast.Call]:
    """The calls torch.name(...) and torch.fft.name(...) of a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("torch."):
            yield node


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_tensors_are_made_on_a_device_that_is_named(path):
    """Else a kernel would get an address of torch's default device."""
    file = str(path.relative_to(PACKAGE))
    for call in calls_of_torch(path):
        text = ast.unparse(call)
        if ast.unparse(call.func).split(".")[-1] not in FACTORIES or (file, text) in AS_TORCHVISION:
            continue
        named = any(keyword.arg in ("device", None) for keyword in call.keywords)
        assert named, f"{file}:{call.lineno}: {text} needs device="


def test_the_native_library_gets_tensors_of_the_cpu():
    """Below cpu/, the device is "cpu", or that of a tensor."""
    for path in (PACKAGE / "engine" / "cpu").rglob("*.py"):
        for call in calls_of_torch(path):
            devices = [ast.unparse(k.value) for k in call.keywords if k.arg == "device"]
            assert all(d == "'cpu'" or d.endswith(".device") for d in devices), ast.unparse(call)


def test_one_function_takes_addresses_for_the_native_library():
    """It asserts the device; so does `result` of launch.py, in place."""
    cpu = PACKAGE / "engine" / "cpu"
    found = {p.name for p in cpu.rglob("*.py") if "data_ptr" in p.read_text()}
    assert found == {"calls.py", "launch.py"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_caches_of_tensors_make_lasting_ones(path):
    """Else a call in inference mode would leave a tensor that autograd cannot save."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.FunctionDef) or node.returns is None:
            continue
        names = [ast.unparse(d).split("(")[0] for d in node.decorator_list]
        if "Tensor" in ast.unparse(node.returns) and any(name in CACHES for name in names):
            assert names[-1] == "lasting", f"{path.name}: {node.name} needs @lasting"
