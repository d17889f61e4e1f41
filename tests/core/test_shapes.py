"""Broadcast shapes, as torch defines them."""

from __future__ import annotations

import subprocess

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from tests.support.forks import python
from warpkit.core.shapes import broadcast_shapes

CASES = [
    [()],
    [(), ()],
    [(3,), ()],
    [(2, 1), (1, 5)],
    [(1,), (0,)],
    [(4, 1, 3), (2, 1), (1,)],
    [(2**40, 1), (1, 2**40)],
]


@pytest.mark.parametrize("shapes", CASES, ids=str)
def test_shapes_broadcast_as_in_torch(shapes: list[tuple[int, ...]]):
    got = broadcast_shapes(*shapes)
    assert isinstance(got, torch.Size)
    assert got == torch.broadcast_shapes(*shapes)


def test_a_first_call_imports_no_sympy():
    """torch.broadcast_shapes would import it, which takes 0.4 s."""
    code = (
        "import torch, sys, warpkit as wk; before = set(sys.modules); "
        "wk.warp_affine(torch.zeros(1, 1, 4, 5), torch.eye(2, 3).expand(3, 2, 3)); "
        "print('sympy' in set(sys.modules) - before)"
    )
    done = subprocess.run([*python(), "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_incompatible_shapes_raise_torchs_error():
    with pytest.raises(RuntimeError):
        broadcast_shapes((2,), (3,))
    with pytest.raises(RuntimeError):
        broadcast_shapes((0,), (3,))


def test_symbolic_sizes_stay_symbolic():
    with FakeTensorMode(shape_env=ShapeEnv()) as mode:
        fake = mode.from_tensor(torch.zeros(3, 4))
        n = (fake > 0).nonzero().shape[0]  # a size that depends on the values
        assert broadcast_shapes((n, 1), (1, 5))[0] is n
