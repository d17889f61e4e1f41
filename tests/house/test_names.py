"""The names that an editor lists after `wk.`."""

from __future__ import annotations

import importlib
import inspect

import pytest

import warpkit as wk


def test_dir_lists_exactly_the_public_names():
    names = dir(wk)
    assert set(wk.__all__) < set(names)
    assert {"attacks", "camera", "distributed", "flow", "nn", "opencv", "transforms"} < set(names)
    assert not {"core", "engine", "importlib", "typing"} & set(names)
    assert all(hasattr(wk, name) for name in names)


MODULES = [name for name in dir(wk) if inspect.ismodule(getattr(wk, name))]
INNER = {"opencv": {"fisheye"}}
"""Public modules within public modules."""


def test_every_public_module_is_among_them():
    listed = {"attacks", "camera", "distributed", "flow", "indexing", "nn", "opencv"}
    assert listed | {"transforms", "types", "validation"} == set(MODULES)


@pytest.mark.parametrize("path", [*MODULES, "opencv.fisheye"])
def test_a_public_modules_dir_lists_its_public_names_alone(path: str):
    module = importlib.import_module(f"warpkit.{path}")
    names = dir(module)
    values = {name: getattr(module, name) for name in names}
    assert names == sorted(getattr(module, "__all__", names))
    assert not [name for name in names if name.startswith("_")]
    assert {name for name, v in values.items() if inspect.ismodule(v)} == INNER.get(path, set())
    # nothing that a file imports from torch, numpy or Python's own library
    homes = {getattr(v, "__module__", None) for v in values.values()} - {None}
    assert all(home.split(".")[0] in ("warpkit", "cv2", "typing", "types") for home in homes), homes
    assert not {"Any", "Sequence", "Tensor", "annotations", "checks", "np", "torch"} & set(names)


def test_dir_has_the_names_that_the_pages_show():
    assert {"warp_flow", "flow", "types"} < set(dir(wk))
    assert {"splat", "invert", "to_image"} < set(dir(wk.flow))
    assert {"undistort", "from_sphere"} < set(dir(wk.camera))
    assert {"warpAffine", "INTER_LINEAR", "fisheye"} < set(dir(wk.opencv))
    assert {"Pipeline", "optimize_patch"} < set(dir(wk.attacks))
    assert {"identify", "compare_pipelines"} < set(dir(wk.validation))
    assert {"Interpolation", "MatrixLike", "WarpKeywords"} < set(dir(wk.types))


@pytest.mark.parametrize("name", wk.indexing.__all__)
def test_lookups_in_the_root_work_with_a_deprecation_warning(name):
    """They remain for one release; the warning points to the caller's line."""
    with pytest.warns(DeprecationWarning, match=f"is now warpkit.indexing.{name};") as caught:
        found = getattr(wk, name)
    assert found is getattr(wk.indexing, name)
    assert caught[0].filename == __file__
