"""Mistakes that passed silently in earlier versions."""

from __future__ import annotations

import pickle
from functools import partial

import pytest
import torch

from warpkit.attacks import (
    AffineDistribution,
    Photometric,
    Pipeline,
    jpeg,
    normalize,
    optimize_flow,
    optimize_patch,
    optimize_perturbation,
    to_uint8,
)

IMAGE = torch.rand(1, 3, 16, 16, generator=torch.Generator().manual_seed(1))
BOXES = torch.tensor([[2.0, 2, 10, 10]])


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def climb(image=IMAGE, **options):
    weights = torch.linspace(-1, 1, 16)
    options = {"epsilon": 8 / 255, "samples": 2, **options}
    return optimize_perturbation(
        lambda v: (v * weights).mean(), image, AffineDistribution(angle=(-30, 30)), **options
    )


def test_a_resumed_run_keeps_its_step_size():
    first = climb(steps=3, generator=seeded())
    resumed = climb(steps=6, generator=seeded(), resume=first.state)
    whole = climb(steps=6, generator=seeded(), step_size=2.5 * 8 / 255 / 3)
    assert torch.equal(resumed.image, whole.image)
    with pytest.raises(ValueError, match="optimize_perturbation: `step_size` must be None or the"):
        climb(steps=6, generator=seeded(), resume=first.state, step_size=1e-4)


def test_a_state_of_another_image_or_other_limits_is_rejected():
    state = climb(steps=2, generator=seeded()).state
    for change in ({"epsilon": 1 / 255}, {"image": 1 - IMAGE}):
        with pytest.raises(ValueError, match="optimize_perturbation: `resume` must be the state"):
            climb(steps=2, generator=seeded(), resume=state, **change)
    wider = climb(steps=2, generator=seeded(), resume=state, epsilon=9 / 255)
    assert wider.delta.abs().max() <= 9 / 255
    call = partial(optimize_patch, torch.mean, IMAGE, BOXES, None, patch_size=(6, 6), steps=2)
    with pytest.raises(ValueError, match="optimize_patch: `resume`"):
        call(limits=(0.6, 0.7), resume=call(limits=(0.2, 0.3)).state)


def broken(value: float):
    return lambda v: v.mean() * value


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_an_objective_of_nan_stops_the_run_at_once(value):
    for call in (
        partial(optimize_perturbation, broken(value), IMAGE, epsilon=0.1, steps=2),
        partial(optimize_patch, broken(value), IMAGE, BOXES, None, patch_size=(6, 6), steps=2),
        partial(optimize_flow, broken(value), IMAGE, epsilon=1.0, steps=2),
    ):
        with pytest.raises(ValueError, match=r"`objective` must be finite.* in step 1"):
            call()


def test_a_random_steps_gradient_uses_the_same_draw():
    def flip(images: torch.Tensor) -> torch.Tensor:
        return images.flip(-1) if torch.rand(()) < 0.5 else images

    image = (IMAGE * 255).round() / 255
    flipped = set()
    for seed in range(8):
        torch.manual_seed(seed)
        leaf = image.clone().requires_grad_()
        shown = Pipeline(flip)(leaf)
        (grad,) = torch.autograd.grad(shown[0, 0, 0, 0], leaf)
        at = int(grad[0, 0, 0].argmax())
        assert shown[0, 0, 0, 0] == image[0, 0, 0, at], seed
        flipped.add(at)
        torch.manual_seed(seed)
        with torch.no_grad():
            assert torch.equal(Pipeline(flip)(image), shown), seed  # no further number is drawn
    assert flipped == {0, 15}


def test_a_failed_call_does_not_decide_what_a_step_takes():
    def step(images: torch.Tensor) -> torch.Tensor:
        if images.shape[-1] < 8:
            raise ValueError("too small")
        coarse = (images.float() / 4).round() * 4
        return coarse.to(images.dtype) if images.dtype == torch.uint8 else images

    pipeline = Pipeline(step)
    with pytest.raises(ValueError, match="too small"):
        pipeline(IMAGE[..., :4])
    shown = (pipeline(IMAGE) * 255).round()
    assert bool((shown % 4 == 0).all())


@pytest.mark.parametrize("name", ["start", "mask"])
def test_a_patchs_start_and_mask_must_be_in_0_1(name):
    channels = 3 if name == "start" else 1
    call = partial(optimize_patch, torch.mean, IMAGE, BOXES, None, patch_size=(6, 6), steps=1)
    for wrong in (torch.full((channels, 6, 6), 255.0), torch.full((channels, 6, 6), torch.nan)):
        with pytest.raises(ValueError, match=f"optimize_patch: `{name}` must be in \\[0, 1\\]"):
            call(**{name: wrong})
    assert call(**{name: torch.full((channels, 6, 6), 0.5)}).patch.isfinite().all()


def test_pipelines_can_be_pickled():
    pipeline = Pipeline(jpeg(50), to_uint8, normalize([0.5], [0.25]))
    assert torch.equal(pickle.loads(pickle.dumps(pipeline))(IMAGE), pipeline(IMAGE))


def test_unusable_optimizers_are_named():
    made = torch.optim.Adam([torch.zeros(1, requires_grad=True)])
    for optimizer, text in ((made, "a class such as"), (torch.optim.LBFGS, "got LBFGS")):
        with pytest.raises(ValueError, match=f"optimize_perturbation: `optimizer`.*{text}"):
            climb(steps=1, optimizer=optimizer)


def test_photometric_names_bad_arguments():
    light = Photometric(noise=0.1)
    with pytest.raises(TypeError, match="Photometric: `views` must be"):
        light(None)
    with pytest.raises(ValueError, match=r"Photometric.apply: `draws` must be .* got list"):
        light.apply(IMAGE, [[0, 1, 1, 0]])
