"""Rules for the public interface, held by tests instead of advice."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import warpkit as wk

PACKAGE = Path(wk.__file__).parent
POSITIONAL = {("rotation_matrix", "scale")}
"""Defaults that are positional because OpenCV has them so."""


@pytest.mark.parametrize("name", wk.__all__)
def test_options_are_keyword_only(name):
    if inspect.isclass(getattr(wk, name)):
        return
    for p in inspect.signature(getattr(wk, name)).parameters.values():
        free = p.default is p.empty or p.kind is p.KEYWORD_ONLY or (name, p.name) in POSITIONAL
        assert free, f"{name}: make `{p.name}` keyword-only"


@pytest.mark.parametrize("name", wk.__all__)
def test_public_names_are_documented_with_an_example(name):
    thing = getattr(wk, name)
    doc = inspect.getdoc(thing) or ""
    assert len(doc) > 60
    assert inspect.isclass(thing) or ">>>" in doc, f"{name}: add an example that runs"


def test_the_public_list_is_sorted_and_complete():
    assert list(wk.__all__) == sorted(wk.__all__)
    public = {n for n, v in vars(wk).items() if not n.startswith("_") and not inspect.ismodule(v)}
    assert public == set(wk.__all__)


def test_siblings_have_the_same_defaults():
    seen: dict[str, object] = {}
    for name in ("warp_affine", "warp_perspective", "remap", "sample_pixels"):
        for p in inspect.signature(getattr(wk, name)).parameters.values():
            if p.default is not p.empty:
                assert seen.setdefault(p.name, p.default) == p.default, (name, p.name)


def test_importing_warpkit_imports_torch_alone():
    code = (
        "import torch, sys; before = set(sys.modules); import warpkit; "
        "heavy = {'numba', 'triton', 'cv2', 'torchvision', 'kornia', 'matplotlib', 'PIL', 'rich'}; "
        "print(sorted(heavy & (set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_modules_are_loaded_when_they_are_asked_for():
    code = (
        "import sys, warpkit as wk; assert 'warpkit.attacks' not in sys.modules; "
        "print(wk.attacks.AffineDistribution.__name__, wk.nn.Warp.__name__, "
        "wk.opencv.INTER_LINEAR, wk.transforms.RandomAffine.__name__, "
        "wk.validation.compare_with_opencv.__name__, wk.distributed.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    said = "AffineDistribution Warp 1 RandomAffine compare_with_opencv warpkit.distributed"
    assert done.stdout.strip() == said


def test_a_name_that_is_not_there_is_refused_as_by_any_module():
    with pytest.raises(AttributeError, match="module 'warpkit' has no attribute 'warp_afine'"):
        wk.warp_afine  # pyright: ignore  # noqa: B018
    assert not hasattr(wk, "cli_option")


ORDER = """
    _tracing _environment _names _slips _checks _sharding kernels _outside geometry theta warp
    coverage gradients indexing _objects patches __init__ opencv nn transforms
    progress attacks _parity validation _shard_gradients distributed
    image_kinds image_files demo demo_figure demo_run attack_demo attack_run parity_run bench
    bench_run cli_errors cli_options warp_picture warp_run cli __main__
"""
"""A module imports only from itself and those before it."""
LAYERS = ORDER.split()


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: p.stem)
def test_imports_point_one_way(path):
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    tree = ast.parse(path.read_text())
    for top in tree.body:
        if isinstance(top, ast.If) and ast.unparse(top.test) == "typing.TYPE_CHECKING":
            top.body.clear()  # never runs
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("warpkit"):
            assert node.module is not None
            inner = node.module.split(".")[1:] or [alias.name for alias in node.names]
            assert LAYERS.index(inner[0]) <= LAYERS.index(own), f"{path.name} imports {inner[0]}"


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: p.stem)
def test_files_stay_small(path):
    assert len(path.read_text().splitlines()) <= 400
