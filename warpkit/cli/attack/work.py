"""The work of `warpkit attack`: a small net learns a photograph, and is fooled about it.

The net tells the four quarters of the photograph apart, however they are turned, scaled and moved.
That is learned in seconds from any photograph, without a data set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import warpkit as wk
from warpkit.attacks import AffineDistribution, optimize_perturbation
from warpkit.attacks.views import to_levels

BORDER = "reflect_101"
LABELS = torch.arange(4)
TARGETS = (LABELS + 1) % 4
"""What the net shall say: the next quarter."""

TRAINING_STEPS, VIEWS, UNSEEN = 150, 8, 100


@dataclass(frozen=True)
class Attack:
    """What came of it; all photographs (3, H, W) in [0, 1], on 8-bit levels."""

    before: Tensor
    after: Tensor
    history: list[float]
    rates: dict[str, float]
    """How often the answer is the target under unseen transformations, by what is shown."""


def moves(size: tuple[int, int]) -> AffineDistribution:
    """The transformations: turns, sizes, and shifts by up to a sixth of the shorter side."""
    reach = min(size) / 6
    return AffineDistribution(angle=(-60, 60), scale=(0.6, 1.4), translation=(-reach, reach))


def quarters(photograph: Tensor) -> Tensor:
    """(4, 3, H / 2, W / 2), row by row; an odd last row or column is left out."""
    height, width = (side // 2 for side in photograph.shape[-2:])
    even = photograph[:, : 2 * height, : 2 * width]
    return (
        even.unflatten(2, (2, width)).unflatten(1, (2, height)).permute(1, 3, 0, 2, 4).flatten(0, 1)
    )


def joined(pieces: Tensor) -> Tensor:
    """The photograph of four quarters."""
    return torch.cat([torch.cat(list(row), dim=2) for row in pieces.unflatten(0, (2, 2))], dim=1)


def network() -> nn.Sequential:
    """Three convolutions and a mean over the image: logits (N, 4)."""
    layers: list[nn.Module] = []
    for before, after in ((3, 12), (12, 24), (24, 32)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 4))


def learn(
    pieces: Tensor,
    generator: torch.Generator,
    advance: Callable[[str], None],
    pipeline: Callable[[Tensor], Tensor] | None,
) -> nn.Module:
    """A net that knows the quarters (4, 3, h, w) under transformations, behind a pipeline."""
    size = (pieces.shape[-2], pieces.shape[-1])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(TRAINING_STEPS):
        matrices = moves(size).sample(VIEWS, size=size, generator=generator)
        optimizer.zero_grad()
        # smoothed: a net that is sure of everything has no gradient left to attack it by
        answers = model(views(pieces, matrices, pipeline))
        loss = F.cross_entropy(answers, LABELS.repeat_interleave(VIEWS), label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        advance(f"loss {loss.item():.3f}")
    return model.eval().requires_grad_(False)


def views(pieces: Tensor, matrices: Tensor, pipeline: Callable[[Tensor], Tensor] | None) -> Tensor:
    """Every quarter under every matrix, image by image, as the pipeline hands it on.

    pieces (B, C, h, w); matrices (S, 2, 3); the result is (B S, C, h, w) without a pipeline.
    """
    warped = wk.warp_affine(pieces[:, None], matrices, border=BORDER).flatten(0, 1)
    return warped if pipeline is None else pipeline(warped)


def objective(model: nn.Module, shown: Tensor) -> Tensor:
    """How far the answers are from the targets: what the attack minimises."""
    return F.cross_entropy(model(shown), TARGETS.repeat_interleave(len(shown) // 4))


def fooled(
    model: nn.Module,
    pieces: Tensor,
    matrices: Tensor,
    pipeline: Callable[[Tensor], Tensor] | None,
) -> float:
    """The part of the answers that are the targets.

    pieces (B, C, h, w); matrices (S, 2, 3).
    """
    with torch.no_grad():
        answers = model(views(pieces, matrices, pipeline)).argmax(1)
    return (answers == TARGETS.repeat_interleave(len(matrices))).double().mean().item()


def attack(
    photograph: Tensor,
    epsilon: float,
    steps: int,
    *,
    pipeline: Callable[[Tensor], Tensor] | None = None,
    learned: Callable[[str], None] = lambda words: None,
    show: bool = False,
) -> Attack:
    """Perturb a photograph (3, H, W) in [0, 1] as it stands, and under transformations.

    pipeline: what stands before the net, while it learns too.
    """
    generator = torch.Generator().manual_seed(0)
    pieces = to_levels(quarters(photograph)) / 255
    size = (pieces.shape[-2], pieces.shape[-1])
    model = learn(pieces, generator, learned, pipeline)
    unseen = moves(size).sample(UNSEEN, size=size, generator=generator)
    rates = {"the photograph": fooled(model, pieces, unseen, pipeline)}
    found = None
    for name, distribution in (("as it stands", None), ("under transformations", moves(size))):
        found = optimize_perturbation(
            lambda shown: objective(model, shown),
            pieces,
            distribution,
            epsilon=epsilon,
            steps=steps,
            samples=4,
            generator=generator,
            quantize=True,
            pipeline=pipeline,
            progress=show,
            border=BORDER,
        )
        rates[f"optimised {name}"] = fooled(model, found.image, unseen, pipeline)
    assert found is not None
    return Attack(joined(pieces), joined(found.image), found.history, rates)
