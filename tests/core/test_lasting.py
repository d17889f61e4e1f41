"""Whatever outlives a call inside torch.inference_mode() works in later calls with gradients."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import torch

import warpkit as wk
from tests.support import ROOT
from tests.support.forks import python
from warpkit.core.lasting import lasting


def test_all_functions_train_after_calls_inside_inference_mode(tmp_path: Path):
    """As in a process without these calls, the first and the second time."""
    found = []
    for words in (["first"], []):
        file = tmp_path / f"{len(words)}.pt"
        command = [*python(), "-m", "tests.support.kept_tensors", *words, str(file)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found.append(torch.load(file))
    after, fresh = found
    assert after.keys() == fresh.keys()
    assert len(fresh) > 150
    for name, (truth, _) in fresh.items():
        for tensors in after[name] + fresh[name][1:]:
            for one, other in zip(tensors, truth, strict=True):
                torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True, msg=name)


def test_kept_tensors_are_ordinary_ones():
    make = lasting(torch.zeros)
    with torch.inference_mode():
        assert torch.zeros(2).is_inference()
        assert not make(2).is_inference()
        assert torch.is_inference_mode_enabled()
        with pytest.raises(TypeError):
            make("2")  # pyright: ignore
        assert torch.is_inference_mode_enabled()


def test_a_parameter_is_warped_in_training_after_a_validation():
    image = torch.nn.Parameter(torch.arange(6.0).reshape(1, 2, 3))
    shift = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    with torch.inference_mode():
        wk.warp_affine(image, shift, border_value=2.5)
    for _ in range(2):
        out = wk.warp_affine(image, shift, border_value=2.5)
        assert out.tolist() == [[[2.5, 0.0, 1.0], [2.5, 3.0, 4.0]]]
        (gradient,) = torch.autograd.grad(out.sum(), image)
        assert gradient.tolist() == [[[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]]]
