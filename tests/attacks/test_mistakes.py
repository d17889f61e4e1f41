"""Mistaken arguments of attacks: the error names the intended one, and correct ones pass."""

from __future__ import annotations

import random
import re
import warnings

import pytest
import torch
from torch import Tensor, nn

import warpkit as wk
from tests.support.inputs import noise
from warpkit.attacks import (
    AffineDistribution,
    Cylinder,
    Photometric,
    Pipeline,
    expectation,
    optimize_patch,
    optimize_perturbation,
)
from warpkit.nn import SpatialTransformer

IMAGE = noise(2, 3, 6, 6, dtype=torch.float32, seed=1)
EYE = torch.eye(2, 3)[None]


class Vectors:
    """Its `sample` draws vectors, not matrices."""

    def sample(self, n: int, *, size: object, generator: object = None) -> Tensor:
        return torch.zeros(n, 3)


class Counts:
    """Its `sample` means something else."""

    def sample(self, n: int) -> Tensor:
        return torch.zeros(n, 2, 3)


WANTED = "an AffineDistribution, an object with `sample(n, *, size, generator)`, or matrices "
WANTED += "(samples, 2, 3) or (samples, 3, 3), got "
NO_DISTRIBUTION = [
    (lambda n: EYE, WANTED + "a function (make it the `sample` of a class)"),
    (AffineDistribution, WANTED + "the class AffineDistribution (an instance of it?)"),
    (Counts(), WANTED + "a Counts with `sample(n)`"),
    (torch.distributions.Normal(0.0, 1.0), WANTED + "a Normal with `sample(sample_shape)`"),
    (random, WANTED + "a module with `sample(population, k, counts)`"),
    (Vectors(), "one whose `sample(2, ...)` returns (2, 2, 3) or (2, 3, 3), got shape (2, 3)"),
]


@pytest.mark.parametrize(("distribution", "text"), NO_DISTRIBUTION)
def test_an_invalid_distribution_gets_a_hint(distribution: object, text: str):
    calls = {
        "expectation": lambda: expectation(torch.mean, IMAGE, distribution, samples=2),
        "optimize_perturbation": lambda: optimize_perturbation(
            torch.mean, IMAGE, distribution, epsilon=0.1, samples=2
        ),
        "optimize_patch": lambda: optimize_patch(
            torch.mean, IMAGE[:1], [[1, 1, 4, 4]], None, patch_size=(2, 2), samples=2,
            distribution=distribution,
        ),
    }  # fmt: skip
    for name, call in calls.items():
        start = re.escape(f"{name}: `distribution` must be {text}")
        with pytest.raises((TypeError, ValueError), match=f"^{start}$"):
            call()


def test_expectation_rejects_none_as_distribution():
    with pytest.raises(
        TypeError, match=f"^{re.escape(f'expectation: `distribution` must be {WANTED}')}None$"
    ):
        expectation(torch.mean, IMAGE, None, samples=2)


TAKES = "a function that takes images and returns a scalar tensor, got "
NO_OBJECTIVE = [
    (3, TAKES + "int"),
    (nn.Linear, TAKES + "the class Linear (an instance of it?)"),
    (nn.CrossEntropyLoss(), TAKES + "one that takes (input, target)"),
    (lambda images, labels: images.mean(), TAKES + "one that takes (images, labels)"),
    (lambda: torch.zeros(()), TAKES + "one that takes ()"),
    (lambda x: x.mean() + 1j, "a function that returns a scalar tensor, got torch.complex64"),
    (lambda x: x.mean().item(), "a function that returns a scalar tensor, got float"),
]


@pytest.mark.parametrize(("objective", "text"), NO_OBJECTIVE)
def test_an_invalid_objective_gets_a_hint(objective, text: str):
    for name, call in (
        ("expectation", lambda: expectation(objective, IMAGE, EYE)),
        ("optimize_perturbation", lambda: optimize_perturbation(objective, IMAGE, epsilon=0.1)),
    ):
        with pytest.raises(
            TypeError, match=f"^{re.escape(f'{name}: `objective` must be {text}')}$"
        ):
            call()


def test_objectives_with_defaults_and_built_in_functions_are_accepted():
    for objective in (torch.mean, lambda x, weight=1.0: weight * x.mean(), lambda *x: x[0].mean()):
        torch.testing.assert_close(expectation(objective, IMAGE, EYE), IMAGE.mean())


@pytest.mark.parametrize(
    ("epsilon", "got"), [(8, "8 (8/255?)"), (1.5, "1.5 (1.5/255?)"), (256.0, "256")]
)
def test_an_epsilon_in_levels_is_rejected(epsilon, got: str):
    text = "optimize_perturbation: `epsilon` must be at most 1 on images in [0, 1], got "
    with pytest.raises(ValueError, match=f"^{re.escape(text + got)}$"):
        optimize_perturbation(torch.mean, IMAGE, epsilon=epsilon, steps=1)


def test_epsilons_of_1_and_of_an_l2_norm_get_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimize_perturbation(torch.mean, IMAGE, epsilon=1, steps=1)
        optimize_perturbation(torch.mean, IMAGE, epsilon=8, norm="l2", steps=1)


@pytest.mark.parametrize("image", [IMAGE * 255, (IMAGE - 0.45) / 0.22])
def test_an_image_outside_0_1_gets_a_warning(image: Tensor):
    low, high = image.min().item(), image.max().item()
    text = f"the image has values from {low:g} to {high:g}, but it should be in [0, 1]: "
    for name, call in (
        ("quantize", lambda: wk.quantize(image)),
        ("expectation", lambda: expectation(torch.mean, image, EYE, quantize=True)),
    ):
        with pytest.warns(UserWarning, match=f"^{re.escape(f'{name}: {text}')}") as seen:
            call()
        assert [warning.filename for warning in seen] == [__file__]


@pytest.mark.filterwarnings("error")
def test_values_that_may_be_intended_outside_0_1_get_no_warning():
    edge = torch.tensor([-1.0, 0.5, 2.0, torch.nan])
    assert wk.quantize(edge)[[0, 2]].tolist() == [0, 1]
    assert wk.quantize(torch.empty(0)).shape == (0,)
    expectation(torch.mean, IMAGE * 3 - 1, EYE, quantize=True)
    expectation(torch.mean, IMAGE * 255, EYE)


def test_values_are_not_checked_while_tracing():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*the image has values")
        compiled = torch.compile(wk.quantize, fullgraph=True, backend="aot_eager")
        assert (compiled(torch.full((3,), 200.0)) == 1).all()
        assert (torch.func.vmap(wk.quantize)(torch.full((3, 1), 200.0)) == 1).all()


CLASSES = [
    (lambda: Pipeline(Photometric), "Pipeline: `steps[0]` must be a function of images, got "),
    (
        lambda: SpatialTransformer(nn.Flatten, (2, 2)),
        "`localization` must be a torch.nn.Module, got ",
    ),
    (
        lambda: wk.through_uint8(nn.Flatten, IMAGE),
        "`function` must be a function of an image, got ",
    ),
    (
        lambda: expectation(torch.mean, IMAGE, EYE, samples=1, photometric=Photometric),
        "expectation: `photometric` must be None or a Photometric, got ",
    ),
    (
        lambda: optimize_patch(
            torch.mean, IMAGE, [[1, 1, 4, 4]], [0], patch_size=(2, 2), surface=Cylinder
        ),
        "optimize_patch: `surface` must be a Cylinder, or a flow (h, w, 2) of the patch's size",
    ),
]


@pytest.mark.parametrize(("call", "text"), CLASSES)
def test_a_class_in_place_of_an_instance_is_named(call, text):
    with pytest.raises(TypeError, match=re.escape(text)) as caught:
        call()
    assert re.search(r"got the class \w+ \(an instance of it\?\)", str(caught.value))


LEVELS = [
    (lambda: Photometric(brightness=(-30, 30)), "Photometric: `brightness` above 1 leaves nothing"),
    (lambda: Photometric(noise=8), "Photometric: `noise` above 1 leaves nothing"),
    (
        lambda: Photometric(brightness=(0, 9), noise=8),
        "Photometric: `brightness` and `noise` above",
    ),
    (
        lambda: Photometric(noise=0.1)(IMAGE * 255),
        "Photometric: the image has values from ",
    ),
    (
        lambda: expectation(
            torch.mean,
            IMAGE * 255,
            EYE.expand(4, 2, 3),
            chunk=1,
            photometric=Photometric(noise=0.1),
        ),
        "expectation: the image has values from ",
    ),
]


@pytest.mark.parametrize(("call", "text"), LEVELS)
def test_images_of_255_levels_get_one_warning_at_the_callers_line(call, text):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert len(caught) == 1
    assert str(caught[0].message).startswith(text)
    assert caught[0].filename == __file__


def test_photometric_gives_no_warning_for_images_in_0_to_1():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Photometric(brightness=(-1.0, 1.0), contrast=(0.0, 9.0), gamma=(0.1, 9.0), noise=1.0)(IMAGE)
