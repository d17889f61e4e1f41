"""Rules for the public interface that tests enforce."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import warpkit as wk
from tests.support import ROOT
from tests.support.forks import python

PACKAGE = Path(wk.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
POSITIONAL = {("rotation_matrix", "scale")}
"""Defaults that are positional because OpenCV has them so."""
PUBLIC = {
    f"{prefix}{name}": getattr(module, name)
    for prefix, module in (("", wk), ("indexing.", wk.indexing))
    for name in module.__all__
}


@pytest.mark.parametrize("name", PUBLIC)
def test_options_are_keyword_only(name):
    if inspect.isclass(PUBLIC[name]):
        return
    for p in inspect.signature(PUBLIC[name]).parameters.values():
        free = p.default is p.empty or p.kind is p.KEYWORD_ONLY or (name, p.name) in POSITIONAL
        assert free, f"{name}: make `{p.name}` keyword-only"


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_have_an_example(name):
    thing = PUBLIC[name]
    doc = inspect.getdoc(thing) or ""
    assert len(doc) > 60
    assert inspect.isclass(thing) or ">>>" in doc, f"{name}: add an example that runs"


def test_the_public_list_is_sorted_and_complete():
    assert list(wk.__all__) == sorted(wk.__all__)
    public = {n for n, v in vars(wk).items() if not n.startswith("_") and not inspect.ismodule(v)}
    assert public == set(wk.__all__)


def test_related_functions_have_the_same_defaults():
    seen: dict[str, object] = {}
    for name in ("warp_affine", "warp_perspective", "remap", "sample_pixels"):
        for p in inspect.signature(getattr(wk, name)).parameters.values():
            if p.default is not p.empty:
                assert seen.setdefault(p.name, p.default) == p.default, (name, p.name)


def test_importing_warpkit_imports_only_torch():
    code = (
        "import torch, sys; before = set(sys.modules); import warpkit; "
        "heavy = {'triton', 'cv2', 'torchvision', 'kornia', 'matplotlib', 'PIL', 'rich'}; "
        "print(sorted(heavy & (set(sys.modules) - before))); "
        "import numpy as np; import warpkit.validation; "
        "warpkit.opencv.warpAffine(np.zeros((4, 5), np.uint8), np.eye(2, 3), (5, 4)); "
        "print('torch._dynamo' in sys.modules)"
    )
    command = [*python(), "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    # the compiler would add 1.5 s to the first call in OpenCV's arithmetic
    assert done.stdout.split() == ["[]", "False"]


def test_modules_are_loaded_on_first_access():
    code = (
        "import sys, warpkit as wk; assert 'warpkit.attacks' not in sys.modules; "
        "print(wk.attacks.AffineDistribution.__name__, wk.nn.Warp.__name__, "
        "wk.opencv.INTER_LINEAR, wk.transforms.RandomAffine.__name__, "
        "wk.validation.compare_with_opencv.__name__, wk.distributed.__name__)"
    )
    done = subprocess.run([*python(), "-c", code], capture_output=True, text=True, check=True)
    said = "AffineDistribution Warp 1 RandomAffine compare_with_opencv warpkit.distributed"
    assert done.stdout.strip() == said


def test_the_root_names_its_functions_without_torch_and_loads_them_on_first_use():
    code = (
        "import sys, warpkit as wk; assert not {'torch', 'numpy'} & set(sys.modules); "
        "assert {*wk.__all__, 'flow'} < set(dir(wk)); assert 'torch' not in sys.modules; "
        "from warpkit import *; assert wk.resize is resize and 'warp_affine' in vars(wk); "
        "import pickle; assert pickle.loads(pickle.dumps(wk.warp_affine)) is warp_affine"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_after_torch_the_root_loads_the_operators_of_exported_programs():
    names = ["resize_table", "cpu_resize", "cpu_sample_backward", "cuda_sample"]
    code = f"import torch, warpkit; print(*(getattr(torch.ops.warpkit, n) for n in {names}))"
    done = subprocess.run([*python(), "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"warpkit.{name}" for name in names]


def test_an_unknown_name_raises_the_usual_attribute_error():
    with pytest.raises(AttributeError, match="module 'warpkit' has no attribute 'warp_afine'"):
        wk.warp_afine  # pyright: ignore  # noqa: B018
    assert not hasattr(wk, "cli_option")


ROOMS = """
    core choices types
    engine engine.binding engine.definitions engine.arithmetic engine.definitions.lens_fields
    engine.definitions.objects engine.operators
    engine.cpu engine.cpu.opencv
    engine.triton engine.onnx engine.backends
    geometry warp_options warp resizing letterboxing flow gradients indexing patches camera
    alignment __init__ opencv nn transforms attacks validation distributed cli __main__
"""
"""A module imports only from its room and those before it; its room is the longest that fits."""


@cache
def modules() -> dict[str, Path]:
    """Every file of the package by its dotted name; `__init__.py` by its folder's name."""
    parts = {path: path.relative_to(PACKAGE).with_suffix("").parts for path in FILES}
    return {".".join(p).removesuffix(".__init__") or "__init__": path for path, p in parts.items()}


@cache
def imports(name: str) -> set[str]:
    """The modules of the package that a module imports anywhere in its file."""
    tree, known, found = ast.parse(modules()[name].read_text()), modules(), set()
    for top in tree.body:
        if isinstance(top, ast.If) and ast.unparse(top.test) == "typing.TYPE_CHECKING":
            top.body.clear()  # `if TYPE_CHECKING` never runs
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("warpkit"):
            base = (node.module or "").removeprefix("warpkit").removeprefix(".")
            for alias in node.names:
                inner = f"{base}.{alias.name}".removeprefix(".")
                found.add(inner if inner in known else base or "__init__")
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name == "warpkit"}
    return {"__init__" if module == "warpkit" else module for module in found} - {name}


def room(name: str) -> int:
    """The number of the room that a module belongs to."""
    rooms = ROOMS.split()
    fits = [r for r in rooms if name == r or name.startswith(f"{r}.")]
    return rooms.index(max(fits, key=len))


@pytest.mark.parametrize("name", sorted(modules()))
def test_imports_point_one_way(name):
    for imported in imports(name):
        assert room(imported) <= room(name), f"{name} imports {imported}"


def test_no_imports_are_circular():
    """Nor are imports inside a room."""
    graph = {name: imports(name) for name in modules()}
    order = list(TopologicalSorter(graph).static_order())  # raises CycleError with the cycle
    assert len(order) == len(graph) > 100


def test_no_name_of_a_package_hides_one_of_its_modules():
    """Whichever is imported last would replace the other."""
    known = modules()
    for package, path in known.items():
        if path.name != "__init__.py":
            continue
        # by its sources, since a folder that has moved may have left compiled code behind
        inner = {p.relative_to(path.parent).parts[0] for p in path.parent.rglob("*.py")}
        inner = {part.removesuffix(".py") for part in inner}
        for node in ast.parse(path.read_text()).body:
            names = {getattr(node, "name", "")}
            if isinstance(node, ast.ImportFrom):
                base = f"{node.module}.".removeprefix("warpkit.")
                values = [alias for alias in node.names if base + alias.name not in known]
                names = {alias.asname or alias.name for alias in values}
            elif isinstance(node, ast.Assign):
                targets = [n for target in node.targets for n in ast.walk(target)]
                names = {target.id for target in targets if isinstance(target, ast.Name)}
            assert not names & inner, f"{package}: {names & inner}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_files_stay_small(path):
    assert len(path.read_text().splitlines()) <= 400


def test_the_quick_tests_cover_every_room():
    """`scripts/test --quick` runs a test file of each room, or the room's doctests."""
    text = (ROOT / "scripts" / "test").read_text()
    files = re.findall(
        r"(?:tests|warpkit)/[\w/.]+", text[text.index("quick=(") : text.index(") ;;")]
    )
    assert all((ROOT / file).exists() for file in files)
    touched = {file.split("/", 1)[1].removesuffix(".py") for file in files}
    rooms = {p.parent.relative_to(ROOT / "tests") for p in (ROOT / "tests").rglob("test_*.py")}
    for room_ in {r.as_posix() for r in rooms} - {"support"}:
        assert any(f == room_ or f.startswith(f"{room_}/") for f in touched), room_
