"""What an editor lists after `wk.`."""

from __future__ import annotations

import warpkit as wk


def test_the_list_has_every_public_name_and_no_other():
    names = dir(wk)
    assert set(wk.__all__) < set(names)
    assert {"attacks", "camera", "distributed", "flow", "nn", "opencv", "transforms"} < set(names)
    assert not {"core", "engine", "importlib", "typing"} & set(names)
    assert all(hasattr(wk, name) for name in names)
