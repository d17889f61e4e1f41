"""`optimize_flow`: both budgets, no new colours, a step by hand, chunks, resuming, errors."""

from __future__ import annotations

import re

import pytest
import torch

import warpkit as wk
from tests.support.inputs import seeded
from tests.support.tolerances import TOLERANCE
from warpkit import flow
from warpkit.attacks import AffineDistribution, FlowPerturbation, optimize_flow

TURNS = AffineDistribution(angle=(-20, 20), translation=(-1.0, 1.0))


def waves(shift):
    """Smooth images (2, 3, 16, 20) in [0, 1], moved by `shift` pixels."""
    x, y = torch.arange(20.0) - shift, torch.arange(16.0)[:, None] - shift
    phase = torch.arange(6.0).reshape(2, 3, 1, 1)
    return 0.5 + 0.45 * torch.sin(0.6 * x + phase) * torch.cos(0.5 * y - phase)


IMAGE, PATTERN = waves(0), waves(1.2)


def likeness(x):
    """The objective: a scalar of the moved images x (n, 3, 16, 20)."""
    pattern = PATTERN.to(x.dtype).repeat_interleave(len(x) // 2 or 1, 0)[: len(x)]
    return 100 * (x - pattern).square().mean()


def run(**options) -> FlowPerturbation:
    given = {
        "objective": likeness, "image": IMAGE, "distribution": TURNS, "epsilon": 1.5, "steps": 5,
        "samples": 4, "spacing": 4, "generator": seeded(), **options,
    }  # fmt: skip
    return optimize_flow(**given)


@pytest.mark.parametrize(("smoothness", "quantize"), [(0.1, False), (5.0, True)])
def test_both_budgets_hold_and_no_colour_is_new(smoothness, quantize):
    image = (IMAGE * 255).round() / 255
    options = {"smoothness": smoothness, "quantize": quantize, "steps": 12}
    found = run(image=image, distribution=None, **options)
    lengths = found.flow.norm(dim=-1)
    steps = [found.flow.diff(dim=dim).norm(dim=-1).max() for dim in (-2, -3)]
    assert lengths.max() <= 1.5
    assert max(steps) <= smoothness
    # one of the two budgets is exhausted
    assert lengths.max() > 1.3 or max(steps) > 0.099
    truth = wk.warp_flow(image, found.flow, border="replicate")
    truth = (truth * 255).round() / 255 if quantize else truth
    assert torch.equal(found.image, truth)
    assert (found.image.amax((-1, -2)) <= image.amax((-1, -2))).all()
    assert (found.image.amin((-1, -2)) >= image.amin((-1, -2))).all()
    seen = found.image if quantize else truth
    assert likeness(seen) < likeness(image) * (0.9 if smoothness < 1 else 0.5)
    assert found.history[0] == pytest.approx(likeness(image).item(), rel=1e-5)
    if smoothness < 0.5:
        assert flow.jacobian_determinant(found.flow).min() > 0


@pytest.mark.parametrize("dim", [-2, -3])
def test_smoothness_limits_a_flow_that_changes_along_one_axis(dim):
    """A ramp along x, brighter in one half and darker in the other: offsets of opposite signs."""
    ramp = torch.linspace(0, 1, 20).expand(1, 1, 20, 20)
    sign = torch.where(torch.arange(20) < 10, 1.0, -1.0)
    sign = sign if dim == -2 else sign[:, None]
    options = {"objective": lambda x: (x * sign).sum(), "image": ramp, "distribution": None}
    found = run(**options, smoothness=0.2, epsilon=3.0).flow
    assert 0.19 < found.diff(dim=dim).norm(dim=-1).max() <= 0.2
    assert found.norm(dim=-1).max() > 0.4  # both halves moved


def test_one_signed_step_by_hand():
    """From zero, the control points move against the sign of their gradient."""
    found = run(distribution=None, steps=1, step_size=0.3, smoothness=9.0)
    control = torch.zeros(2, 7, 8, 2, requires_grad=True)
    views = wk.warp_flow(IMAGE, flow.bspline(control, (16, 20)), border="replicate")
    (grad,) = torch.autograd.grad(likeness(views), control)
    truth = flow.bspline(-0.3 * grad.sign(), (16, 20))
    assert (found.flow - truth).abs().max() < 1e-6
    assert found.history == [pytest.approx(likeness(IMAGE).item(), rel=1e-6)]


def test_chunks_and_resuming_change_nothing():
    whole = run(image=IMAGE.double())
    pieces = run(image=IMAGE.double(), chunk=3)
    assert (pieces.flow - whole.flow).abs().max() < TOLERANCE["pieces"]
    first = run(image=IMAGE.double(), steps=2)
    rest = run(image=IMAGE.double(), step_size=2.5 * 1.5 / 5, resume=None)
    paused = run(image=IMAGE.double(), steps=2, step_size=2.5 * 1.5 / 5)
    on = run(image=IMAGE.double(), resume=paused.state, generator=seeded(7))
    assert torch.equal(on.flow, rest.flow)
    assert first.history[0] == whole.history[0]
    one = run(image=IMAGE[0])
    assert one.flow.shape == (16, 20, 2)
    assert one.image.shape == (3, 16, 20)
    assert re.match(r"flow of \(3, 16, 20\): 5 steps, objective", str(one))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"epsilon": 0}, "optimize_flow: `epsilon` must be a number above 0"),
        ({"smoothness": -1.0}, "`smoothness` must be a number above 0"),
        ({"spacing": 0}, "`spacing` must be"),
        ({"image": IMAGE + 2}, "`image` must be in [0, 1]"),
        ({"quantize": 1}, "`quantize` must be True or False"),
        ({"objective": lambda x: x.detach().mean()}, "optimize_flow: `objective` must"),
    ],
    ids=["epsilon", "smoothness", "spacing", "image", "quantize", "objective"],
)
def test_errors(options, text):
    with pytest.raises((ValueError, TypeError), match=re.escape(text)):
        run(**options)
