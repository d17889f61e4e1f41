"""`optimize_perturbation`: bounds, steps by hand, chunks, resuming, 8-bit files, and errors."""

from __future__ import annotations

import io
import re
import sys
import warnings
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor

import warpkit as wk
from tests.support.inputs import noise, seeded
from tests.support.tolerances import TOLERANCE
from warpkit.attacks import AffineDistribution, Perturbation, expectation, optimize_perturbation

TURNS = AffineDistribution(angle=(-40, 40), scale=(0.8, 1.2), translation=(-1.0, 1.0))
IMAGE = noise(2, 3, 8, 9, dtype=torch.float32, seed=1)
PATTERN = noise(3, 8, 9, dtype=torch.float32, seed=2)


def likeness(x: Tensor) -> Tensor:
    """A smooth function that depends on every pixel."""
    return ((x - 0.5) * (PATTERN.to(x.dtype) - 0.5)).sum((1, 2, 3)).square().mean() - x.mean()


def run(**options) -> Perturbation:
    given = {
        "objective": likeness,
        "image": IMAGE,
        "distribution": TURNS,
        "epsilon": 8 / 255,
        "steps": 6,
        "samples": 5,
        "generator": seeded(),
        **options,
    }
    return optimize_perturbation(**given)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("epsilon", [1e-3, 8 / 255, 0.7, 30.0])
@pytest.mark.parametrize("quantize", [False, True])
def test_results_stay_in_0_1_and_within_epsilon(
    dtype: torch.dtype, norm: str, epsilon: float, quantize: bool
):
    if norm == "linf":
        epsilon = min(max(epsilon, quantize / 255), 1.0)  # smaller and larger values are rejected
    image = noise(2, 3, 8, 9, dtype=dtype, seed=1)
    image[0, 0, 0, :3] = torch.tensor([0.0, 1.0, 0.5])
    if quantize:
        image = (image * 255).round() / 255
    found = run(
        image=image, epsilon=epsilon, norm=norm, steps=5, step_size=2 * epsilon, quantize=quantize
    )
    assert found.image.dtype == dtype
    assert found.image.shape == image.shape
    assert torch.equal(found.delta, found.image - image)
    assert found.image.min() >= 0
    assert found.image.max() <= 1
    if norm == "linf":
        assert found.delta.abs().max().item() <= epsilon
    else:
        assert found.delta.double().flatten(1).norm(dim=1).max().item() <= epsilon
    if quantize:
        levels = found.image.double() * 255
        torch.testing.assert_close(levels, levels.round(), rtol=0, atol=TOLERANCE["levels"])
    if epsilon >= 8 / 255:
        assert (found.delta != 0).any()
    for tensor in (found.image, found.delta):
        assert not tensor.requires_grad
    assert len(found.history) == 5


def test_all_of_epsilon_is_used():
    found = run(objective=torch.mean, epsilon=8 / 255, distribution=None, steps=3)
    inside = IMAGE > 8.01 / 255
    torch.testing.assert_close(found.delta[inside], torch.full_like(found.delta[inside], -8 / 255))
    dark = noise(1, 4, 4) * 1e-3 + 0.9
    l2 = run(image=dark, objective=torch.mean, distribution=None, norm="l2", epsilon=0.2, steps=9)
    torch.testing.assert_close(l2.delta, torch.full_like(dark, -0.05), rtol=2e-6, atol=0)


def test_one_signed_step_by_hand():
    generator = seeded(5)
    matrices = TURNS.sample(5, size=(8, 9), generator=seeded(5))
    x = IMAGE.clone().requires_grad_()
    value = expectation(likeness, x, matrices, border="reflect")
    (gradient,) = torch.autograd.grad(value, x)
    found = run(generator=generator, steps=1, step_size=0.01, border="reflect")
    expected = (IMAGE - 0.01 * gradient.sign()).clamp(0, 1)
    torch.testing.assert_close(found.image, expected, rtol=0, atol=TOLERANCE["float32 matrices"])
    assert found.history == [pytest.approx(value.item(), rel=1e-6)]


def test_one_step_along_the_gradient_by_hand():
    x = IMAGE.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(likeness(x), x)
    for norm, optimizer in (("l2", None), ("linf", "gradient")):
        found = run(
            distribution=None, norm=norm, epsilon=1.0, steps=1, step_size=0.1, optimizer=optimizer
        )
        lengths = gradient.flatten(1).norm(dim=1)[:, None, None, None]
        expected = (IMAGE - 0.1 * gradient / lengths).clamp(0, 1)
        torch.testing.assert_close(found.image, expected)


def test_torch_optimizers_take_their_own_steps():
    """Adam's first step has the step size's length; SGD's is proportional to the gradient."""
    x = IMAGE.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(likeness(x), x)
    options = {"distribution": None, "epsilon": 1.0, "steps": 1, "step_size": 0.01}
    adam = run(optimizer=torch.optim.Adam, **options)
    expected = (IMAGE - 0.01 * gradient.sign()).clamp(0, 1)
    torch.testing.assert_close(adam.image, expected, rtol=0, atol=1e-5)
    sgd = run(optimizer=partial(torch.optim.SGD, momentum=0.9), **options)
    torch.testing.assert_close(sgd.image, (IMAGE - 0.01 * gradient).clamp(0, 1))


@pytest.mark.parametrize("optimizer", [None, torch.optim.Adam])
def test_the_objective_decreases(optimizer):
    found = run(steps=40, epsilon=0.2, optimizer=optimizer)
    assert found.history[-1] < found.history[0] - 0.1
    held_out = TURNS.sample(64, size=(8, 9), generator=seeded(99))
    before, after = (expectation(likeness, x, held_out).item() for x in (IMAGE, found.image))
    assert after < before - 0.1


@pytest.mark.parametrize("chunk", [1, 2, 5, 9])
def test_chunks_change_nothing(chunk: int):
    image = IMAGE.double()
    whole = run(image=image, norm="l2", epsilon=1.0)
    pieces = run(image=image, norm="l2", epsilon=1.0, chunk=chunk)
    torch.testing.assert_close(pieces.image, whole.image, rtol=0, atol=TOLERANCE["pieces"])
    assert pieces.history == pytest.approx(whole.history, rel=TOLERANCE["pieces"])


def test_chunk_bounds_the_number_of_views_in_a_call():
    sizes: list[int] = []
    run(objective=lambda x: sizes.append(len(x)) or x.mean(), samples=5, chunk=2, steps=1)
    assert sizes == [4, 4, 2]  # two images


@pytest.mark.parametrize("optimizer", [None, torch.optim.Adam])
@pytest.mark.parametrize("stop", [1, 3, 6])
def test_a_resumed_run_equals_an_uninterrupted_one(optimizer, stop: int):
    whole = run(optimizer=optimizer, step_size=0.004)
    file = io.BytesIO()
    torch.save(run(optimizer=optimizer, step_size=0.004, steps=stop).state, file)
    file.seek(0)
    state = torch.load(file, weights_only=True)
    rest = run(optimizer=optimizer, resume=state, generator=seeded(77))  # the state has the draws
    assert torch.equal(rest.image, whole.image)
    assert rest.history == whole.history


def test_resuming_does_not_modify_the_state():
    state = run(optimizer=torch.optim.Adam, steps=2).state
    first, second = (run(optimizer=torch.optim.Adam, resume=state, steps=5) for _ in range(2))
    assert torch.equal(first.image, second.image)


def test_every_step_uses_all_given_matrices():
    matrices = TURNS.sample(3, size=(8, 9), generator=seeded())
    seen: list[Tensor] = []
    run(objective=lambda x: seen.append(x.detach()) or x.mean(), distribution=matrices, steps=2)
    expected = wk.warp_affine(IMAGE[:, None], matrices).flatten(0, 1)
    assert torch.equal(seen[0], expected)
    assert seen[1].shape == expected.shape


def test_an_image_without_a_batch_dimension():
    found = run(image=IMAGE[0], steps=2, objective=torch.mean)
    assert found.image.shape == found.delta.shape == IMAGE[0].shape


def test_it_works_under_no_grad_and_gives_models_no_gradient():
    model = torch.nn.Conv2d(3, 1, 3)
    with torch.no_grad():
        found = run(objective=lambda x: model(x).mean(), steps=2)
    assert (found.delta != 0).any()
    assert all(p.grad is None for p in model.parameters())


def test_quantized_views_equal_an_8_bit_files():
    image = (IMAGE * 255).round() / 255
    seen: list[Tensor] = []
    matrices = TURNS.sample(2, size=(8, 9), generator=seeded())
    first = run(
        image=image,
        distribution=matrices,
        steps=2,
        step_size=0.01,
        quantize=True,
        objective=lambda x: seen.append(x.detach()) or x.mean(),
    )
    file = (image * 255).round().to(torch.uint8)
    expected = wk.warp_affine(file[:, None], matrices).flatten(0, 1)
    assert torch.equal(seen[0] * 255, expected.float())
    moved = (seen[1] * 255).round()
    torch.testing.assert_close(seen[1] * 255, moved, rtol=0, atol=TOLERANCE["levels"])
    assert (first.delta != 0).any()


def test_progress_is_shown_on_stderr(capsys: pytest.CaptureFixture[str]):
    run(steps=3, progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "optimize_perturbation" in captured.err
    assert "3/3" in captured.err


def test_progress_without_rich_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    text = "optimize_perturbation: progress=True needs rich, which is not installed: "
    text += "pip install '.[cli]' in a checkout"
    with pytest.raises(ModuleNotFoundError, match=re.escape(text)):
        run(progress=True)


def cut_by_detach(x: Tensor) -> Tensor:
    weight = torch.ones(3, requires_grad=True)
    y = x.mean((0, 2, 3)).detach()  # here
    return (weight * y).sum()


def cut_by_no_grad(x: Tensor) -> Tensor:
    with torch.no_grad():
        return x.square().mean()


def cut_by_item(x: Tensor) -> Tensor:
    return torch.tensor(x.mean().item(), requires_grad=True)


def cut_by_argmax(x: Tensor) -> Tensor:
    return x.flatten(1).argmax(1).float().mean()


@pytest.mark.parametrize(
    ("objective", "call"),
    [
        (cut_by_detach, "Tensor.detach"),
        (cut_by_no_grad, "Tensor.square"),
        (cut_by_item, "Tensor.item"),
        (cut_by_argmax, "Tensor.argmax"),
    ],
)
def test_the_call_that_cuts_the_gradient_is_named(objective, call: str):
    start = "^optimize_perturbation: `objective` must be differentiable in the images it is given, "
    here = rf"got no gradient: it ends at torch\.{call} at test_perturbation\.py:\d+"
    with pytest.raises(ValueError, match=start + here) as caught:
        run(objective=objective)
    line = int(re.search(r"py:(\d+)", str(caught.value))[1])
    first = objective.__code__.co_firstlineno
    assert first < line <= first + 3
    assert ("switched off" in str(caught.value)) == (objective is cut_by_no_grad)


def test_an_objective_that_ignores_its_images_is_refused():
    text = "got the objective does not use the images it is given"
    with pytest.raises(ValueError, match=text):
        run(objective=lambda x: torch.ones((), requires_grad=True) * 2)


def test_a_gradient_of_zero_gets_a_warning():
    with pytest.warns(UserWarning, match="optimize_perturbation: the gradient is zero at every"):
        found = run(objective=lambda x: (x.mean() * 0).relu(), steps=2)
    assert (found.delta == 0).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(steps=1)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"epsilon": 0}, ValueError, "`epsilon` must be a number above 0, got 0"),
        ({"epsilon": -0.1}, ValueError, "`epsilon` must be a number above 0, got -0.1"),
        ({"epsilon": float("nan")}, ValueError, "`epsilon` must be a number above 0, got nan"),
        ({"epsilon": "8"}, TypeError, "`epsilon` must be a number above 0, got '8'"),
        ({"norm": "l1"}, ValueError, "`norm` must be one of 'linf', 'l2', got 'l1'"),
        ({"steps": 0}, ValueError, "`steps` must be an integer of at least 1, got 0"),
        ({"samples": -1}, ValueError, "`samples` must be an integer of at least 1, got -1"),
        ({"step_size": 0.0}, ValueError, "`step_size` must be a number above 0, got 0.0"),
        ({"progress": 1}, TypeError, "`progress` must be True or False, got 1"),
        ({"image": IMAGE + 1}, ValueError, "`image` must be in [0, 1], got values from "),
        ({"image": IMAGE * torch.nan}, ValueError, "`image` must be in [0, 1], got values from n"),
        (
            {"image": IMAGE.half()},
            TypeError,
            "`image` must be float32 or float64, got torch.float16",
        ),
        (
            {"optimizer": int},
            TypeError,
            (
                "`optimizer` must be what makes a torch.optim.Optimizer of "
                "([tensor], lr=step_size), got <class 'int'>"
            ),
        ),
        (
            {"optimizer": lambda variables, lr: None},
            TypeError,
            (
                "`optimizer` must be what makes a torch.optim.Optimizer of "
                "([tensor], lr=step_size), got what makes a NoneType"
            ),
        ),
        (
            {"optimizer": "adam"},
            ValueError,
            "`optimizer` must be one of 'sign', 'gradient', got 'adam'",
        ),
        (
            {"quantize": True},
            ValueError,
            (
                "`image` must be what an 8-bit file holds, multiples of 1/255, with quantize=True, "
                "got values between them"
            ),
        ),
        (
            {"quantize": True, "image": torch.zeros(1, 2, 2), "epsilon": 0.003},
            ValueError,
            (
                "`epsilon` must be at least 1/255, one level of an 8-bit file, with quantize=True, "
                "got 0.003"
            ),
        ),
        (
            {"resume": 3},
            TypeError,
            "`resume` must be the state of an earlier result of the same call, got int",
        ),
        (
            {"resume": {"variable": IMAGE}},
            TypeError,
            "`resume` must be the state of an earlier result of the same call, got a dict of ['var",
        ),
        ({"generator": 0}, TypeError, "`generator` must be None or a torch.Generator "),
        (
            {"objective": lambda x: x.mean(1)},
            TypeError,
            "`objective` must be a function that returns a scalar tensor, got shape (10, 8, 9)",
        ),
    ],
)
def test_arguments_are_checked(arguments: dict, error: type[Exception], text: str):
    with pytest.raises(error, match=f"^{re.escape('optimize_perturbation: ' + text)}"):
        run(**arguments)


def test_warp_options_are_checked_by_the_warp():
    with pytest.raises(ValueError, match="warp_affine: `border` must be one of"):
        run(border="mirror")


def test_inference_mode_is_named_in_the_error():
    with torch.inference_mode(), pytest.raises(ValueError, match="gradients are switched off"):
        optimize_perturbation(torch.mean, IMAGE, epsilon=0.1, steps=1)


def test_fewer_steps_than_the_state_has_done_are_rejected():
    state = optimize_perturbation(torch.mean, IMAGE, epsilon=0.1, steps=3).state
    text = "optimize_perturbation: `steps` must be at least 3, those done before, got 2"
    with pytest.raises(ValueError, match=text):
        optimize_perturbation(torch.mean, IMAGE, epsilon=0.1, steps=2, resume=state)


def test_a_result_prints_as_one_line():
    found = optimize_perturbation(torch.mean, torch.full((1, 2, 2), 0.5), epsilon=0.1, steps=3)
    assert str(found) == "perturbation of (1, 2, 2): 3 steps, objective 0.5 -> 0.4"
    assert "state" not in repr(found)  # it holds an optimizer's tensors, which would fill pages
    assert str(replace(found, history=[])) == "perturbation of (1, 2, 2): 0 steps"
