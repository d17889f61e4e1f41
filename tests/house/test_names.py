"""The names that an editor lists after `wk.`."""

from __future__ import annotations

import pytest

import warpkit as wk


def test_dir_lists_exactly_the_public_names():
    names = dir(wk)
    assert set(wk.__all__) < set(names)
    assert {"attacks", "camera", "distributed", "flow", "nn", "opencv", "transforms"} < set(names)
    assert not {"core", "engine", "importlib", "typing"} & set(names)
    assert all(hasattr(wk, name) for name in names)


@pytest.mark.parametrize("name", wk.indexing.__all__)
def test_lookups_in_the_root_work_with_a_deprecation_warning(name):
    """They remain for one release; the warning points to the caller's line."""
    with pytest.warns(DeprecationWarning, match=f"is now warpkit.indexing.{name};") as caught:
        found = getattr(wk, name)
    assert found is getattr(wk.indexing, name)
    assert caught[0].filename == __file__
