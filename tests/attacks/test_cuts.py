"""The error about a missing gradient names the user's call that detached the graph."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

import warpkit as wk
from tests.support.inputs import noise
from warpkit.attacks import (
    Pipeline,
    expectation,
    jpeg,
    normalize,
    optimize_patch,
    optimize_perturbation,
)

IMAGE = noise(2, 3, 8, 9, dtype=torch.float32, seed=1)
TURN = wk.rotation_matrix((4.0, 3.5), 20.0)


def argmax(x: Tensor) -> Tensor:
    return x.flatten(1).argmax(1).float().mean()


def boxes(x: Tensor, **options) -> Tensor:
    return wk.crop_patches(x, [[1.0, 1.0, 7.0, 7.0]], [0], (2, 2), **options)


BEFORE: dict[str, Callable[[Tensor], Tensor]] = {
    "warp": lambda x: wk.warp_affine(x, TURN),
    "opencv": lambda x: wk.warp_affine(x, TURN, arithmetic="opencv4"),
    "antialias": lambda x: wk.warp_affine(x, TURN, antialias=True),
    "crop": lambda x: boxes(x),
    "antialiased crop": lambda x: boxes(x, antialias=True),
    "paste": lambda x: wk.paste_patches(x, torch.ones(3, 2, 2), TURN[None], [0]),
    "noise": lambda x: x + 0.1 * torch.randn_like(x),
    "noise, then warp": lambda x: wk.warp_affine(x + torch.zeros_like(x), TURN),
    "dropout": lambda x: torch.nn.functional.dropout(x),
    "in place": lambda x: x.clamp_(0.1, 0.9),
    "quantize": wk.quantize,
}


@pytest.mark.parametrize("before", BEFORE)
def test_argmax_is_named_behind_every_kind_of_call(before: str):
    text = r"no gradient: it ends at torch\.Tensor\.argmax at test_cuts\.py:(\d+)$"
    with pytest.raises(ValueError, match=text) as caught:
        optimize_perturbation(lambda x: argmax(BEFORE[before](x)), IMAGE, epsilon=0.1, steps=1)
    line = int(re.search(r"py:(\d+)", str(caught.value))[1])
    assert line == argmax.__code__.co_firstlineno + 1


def test_argmax_is_named_in_a_patch_attack():
    with pytest.raises(ValueError, match=r"ends at torch\.Tensor\.argmax at test_cuts\.py"):
        optimize_patch(argmax, IMAGE, [[1, 1, 5, 5]], [0], patch_size=(3, 3), steps=1)


def without_gradients(x: Tensor) -> Tensor:
    with torch.no_grad():
        warped = wk.warp_affine(x, TURN)
    return warped.mean()


def item_of_a_warp(x: Tensor) -> Tensor:
    return torch.tensor(wk.warp_affine(x, TURN).mean().item(), requires_grad=True)


def item_of_an_index(x: Tensor) -> Tensor:
    return torch.tensor(float(x.argmax().item()))


def by_numpy(x: Tensor) -> Tensor:
    return torch.tensor(np.asarray(x.detach()).mean())


def written(x: Tensor) -> Tensor:
    total = torch.zeros(2)
    total[0] = x.argmax()
    return total.sum()


def to_bytes(x: Tensor) -> Tensor:
    return wk.warp_affine((x * 255).to(torch.uint8), TURN).float().mean()


def beside_a_model(x: Tensor) -> Tensor:
    weight = torch.ones((), requires_grad=True)
    return weight * wk.warp_affine(x, TURN).argmax()


@pytest.mark.parametrize(
    ("objective", "call"),
    [
        (without_gradients, "warpkit.warp_affine at test_cuts.py:"),
        (item_of_a_warp, "torch.Tensor.item at test_cuts.py:"),
        (item_of_an_index, "torch.Tensor.argmax at test_cuts.py:"),
        (by_numpy, "torch.Tensor.detach at test_cuts.py:"),
        (written, "torch.Tensor.argmax at test_cuts.py:"),
        (to_bytes, "torch.Tensor.to at test_cuts.py:"),
        (beside_a_model, "torch.Tensor.argmax at test_cuts.py:"),
        (torch.argmax, "torch.argmax"),
    ],
)
def test_the_call_in_the_objective_is_named(objective, call: str):
    with pytest.raises(ValueError, match=re.escape(f"no gradient: it ends at {call}")) as caught:
        optimize_perturbation(objective, IMAGE, epsilon=0.1, steps=1)
    assert ("switched off" in str(caught.value)) == (objective is without_gradients)


def beside_noise(x: Tensor) -> Tensor:
    return torch.randn_like(x).mean() + x.new_zeros(()) + x.argmax().float()


def places(x: Tensor) -> Tensor:
    return x.flatten(1).max(1).indices.float().mean()


def counted(x: Tensor) -> Tensor:
    return torch.tensor(float(len((wk.warp_affine(x, TURN, arithmetic="opencv5") > 2).nonzero())))


def decided(x: Tensor) -> Tensor:
    return torch.tensor(1.0 if wk.warp_affine(x, TURN, arithmetic="opencv5").mean() > 0.5 else 0.0)


def in_pieces(x: Tensor) -> Tensor:
    return expectation(argmax, x, TURN.expand(3, 2, 3), chunk=2)


def through_8_bits(x: Tensor) -> Tensor:
    return argmax(Pipeline(jpeg(50), normalize([0.5], [0.2]))(x))


@pytest.mark.parametrize(
    ("objective", "call"),
    [
        (beside_noise, "torch.Tensor.argmax at test_cuts.py:"),
        (places, "torch.Tensor.max at test_cuts.py:"),
        (counted, "torch.Tensor.gt at test_cuts.py:"),
        (decided, "torch.Tensor.gt at test_cuts.py:"),
        (in_pieces, "torch.Tensor.argmax at test_cuts.py:"),
        (through_8_bits, "torch.Tensor.argmax at test_cuts.py:"),
    ],
)
def test_calls_on_unrelated_tensors_are_not_named(objective, call: str):
    with pytest.raises(ValueError, match=re.escape(f"no gradient: it ends at {call}")):
        optimize_perturbation(objective, IMAGE, epsilon=0.1, steps=1)


def test_noise_of_the_images_shape_does_not_count_as_using_them():
    with pytest.raises(ValueError, match="the objective does not use the images it is given"):
        optimize_perturbation(lambda x: torch.randn_like(x).mean(), IMAGE, epsilon=0.1, steps=1)
