"""Loads a model and its target class."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import warpkit as wk
from warpkit.attacks import (
    AffineDistribution,
    Perturbation,
    Photometric,
    Pipeline,
    optimize_perturbation,
)
from warpkit.cli.attack.exported import PROGRAMS, load_exported
from warpkit.cli.errors import CommandError
from warpkit.cli.image_files import ImageFileError
from warpkit.cli.image_kinds import reason
from warpkit.core.progress import bar_named

UNSEEN, SAMPLES, BORDER = 50, 4, "reflect_101"


@dataclass(frozen=True)
class Answer:
    """A model's prediction for one image: a class, its name and its probability."""

    number: int
    name: str
    probability: float


@dataclass(frozen=True)
class ModelAttack:
    """The results of an attack; images (3, H, W) in [0, 1], on 8-bit levels."""

    before: Tensor
    after: Tensor
    """The image perturbed for random transformations."""
    history: list[float]
    answers: dict[str, Answer]
    """The model's predictions for each untransformed image."""
    rates: dict[str, float]
    """How often the model is fooled for each image, under unseen transformations."""


def read_model(path: Path) -> Callable[[Tensor], Tensor]:
    """A TorchScript or torch.export file as a function of images (N, C, h, w)."""
    if not path.is_file():
        raise ImageFileError(f"{path}: {'a folder' if path.exists() else 'No such file'}")
    wanted = "a model that torch.jit.save or torch.export.save wrote (a file of weights is none)"
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about formats that torch will remove
            if any(name.endswith(PROGRAMS) for name in names):
                return OneByOne(load_exported(path))
            if any("/code/" in name for name in names):
                return frozen(torch.jit.load(str(path), map_location="cpu"))
    except Exception as error:  # broken bytes can raise any error in torch's readers
        words = " ".join(str(error).split())[:160]
        raise ImageFileError(f"{path}: not {wanted}: {words}") from None
    raise ImageFileError(f"{path}: not {wanted}")


def frozen(model: torch.nn.Module) -> torch.nn.Module:
    """A model without gradients for its weights."""
    for weight in model.parameters():  # ScriptModule.requires_grad_ raises an error
        weight.requires_grad_(False)
    return model.eval()


class OneByOne:
    """A model that may have been exported for a batch of one image."""

    def __init__(self, model: Callable[[Tensor], Any]) -> None:
        self.model = model
        self.is_whole = True

    def __call__(self, images: Tensor) -> Tensor:
        """Scores of images (N, C, h, w)."""
        if self.is_whole:
            try:
                return self.model(images)
            except Exception:
                if len(images) == 1:
                    raise
                self.is_whole = False
        return torch.cat([self.model(image[None]) for image in images])


def read_labels(path: Path | None) -> list[str]:
    """The names of a model's classes, one per line; empty without a file."""
    if path is None:
        return []
    try:
        return [line.strip() for line in path.read_text().splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise ImageFileError(f"{path}: {reason(error)}") from None


def class_of(target: str | None, labels: list[str], count: int) -> int | None:
    """The number of a class, given by its name or its number."""
    if target is None:
        return None
    if target in labels:
        return labels.index(target)
    if target.isdecimal() and int(target) < count:
        return int(target)
    labels_or = f"one of {len(labels)} labels, or " if labels else ""
    raise CommandError(f"--target takes {labels_or}a number below {count}, got {target!r}")


def moves(size: tuple[int, int]) -> AffineDistribution:
    """Small rotations, scales and shifts, as if the picture were taken again."""
    reach = min(size) / 20
    return AffineDistribution(angle=(-10, 10), scale=(0.9, 1.1), translation=(-reach, reach))


@dataclass(frozen=True)
class Subject:
    """A model behind its pipeline, and the names of its classes."""

    model: Callable[[Tensor], Tensor]
    pipeline: Pipeline
    labels: list[str]

    def scores(self, images: Tensor) -> Tensor:
        """Scores (N, classes) for the pipeline's results (N, ...)."""
        try:
            scores = self.model(images)
        except (RuntimeError, TypeError, ValueError, AssertionError) as error:
            words = " ".join(str(error).split())[-160:]
            shape = "x".join(map(str, images.shape))
            raise CommandError(
                f"--model cannot take what --pipeline makes, {shape}: {words}"
            ) from None
        if not isinstance(scores, Tensor) or scores.ndim != 2 or not scores.is_floating_point():
            got = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
            raise CommandError(f"--model must make scores (images, classes), it makes {got}")
        if self.labels and scores.shape[1] != len(self.labels):
            have = f"{len(self.labels)} names for {scores.shape[1]} classes"
            raise CommandError(f"--labels must have a line for each class, it has {have}")
        return scores

    def answer(self, image: Tensor) -> Answer:
        """The model's prediction for an image (3, H, W)."""
        with torch.no_grad():
            chances = self.scores(self.pipeline(image[None])).double().softmax(1)[0]
        number = int(chances.argmax())
        name = self.labels[number] if self.labels else f"class {number}"
        return Answer(number, name, chances[number].item())

    def classes_of(
        self, image: Tensor, matrices: Tensor, files: Photometric | None, draws: Tensor | None
    ) -> Tensor:
        """The predicted classes (S,) for an image (3, H, W) under matrices (S, 2, 3).

        files: with draws (S, 5), what each view goes through.
        """
        with torch.no_grad():
            views = [wk.warp_affine(image, matrix, border=BORDER) for matrix in matrices]
            pictures = [view[None] for view in views]
            if files is not None and draws is not None:
                pictures = [
                    files.apply(view, draw[None])
                    for view, draw in zip(pictures, draws, strict=True)
                ]
            return torch.cat([self.scores(self.pipeline(view)).argmax(1) for view in pictures])


def attack_model(
    image: Tensor,
    subject: Subject,
    target: str | None,
    epsilon: float,
    steps: int,
    show: bool = False,
    jpeg: tuple[int, int] | None = None,
) -> ModelAttack:
    """Perturb an image (3, H, W) so that the model predicts `target`, or another class than before.

    Once without transformations, and once for the mean over random ones, after which the image is
    a JPEG file of a quality in `jpeg`, if that is given.
    """
    files = None if jpeg is None else Photometric(jpeg=jpeg)
    image = (image * 255).round() / 255
    size = (image.shape[-2], image.shape[-1])
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        count = subject.scores(subject.pipeline(image[None])).shape[1]
    before = subject.answer(image)
    wanted = class_of(target, subject.labels, count)
    if wanted == before.number:
        raise CommandError(f"--target {target} is what the model says already")
    unseen = moves(size).sample(UNSEEN, size=size, generator=generator)
    draws = None if files is None else files.sample(UNSEEN, generator=generator)

    def objective(images: Tensor) -> Tensor:
        scores = subject.scores(images)
        if wanted is not None:
            return F.cross_entropy(scores, torch.full((len(scores),), wanted))
        return F.log_softmax(scores, 1)[:, before.number].mean()

    def fooled(image: Tensor) -> float:
        classes = subject.classes_of(image, unseen, files, draws)
        return (
            (classes == wanted if wanted is not None else classes != before.number)
            .double()
            .mean()
            .item()
        )

    def optimized(distribution: AffineDistribution | None) -> Perturbation:
        try:
            return optimize_perturbation(
                objective,
                image,
                distribution,
                epsilon=epsilon,
                steps=steps,
                samples=SAMPLES,
                generator=generator,
                quantize=True,
                photometric=None if distribution is None else files,
                pipeline=subject.pipeline,
                progress=show,
                border=BORDER,
            )
        except ValueError as error:
            if "objective" in str(error) or "Pipeline" in str(error):
                raise CommandError(f"--model passes no gradient: {error}") from None
            raise

    with bar_named("as it stands"):
        still = optimized(None)
    with bar_named("under transformations"):
        perturbation = optimized(moves(size))
    pictures = {
        "the photograph": image,
        "perturbed as it stands": still.image,
        "perturbed under transformations": perturbation.image,
    }
    answers = {name: subject.answer(picture) for name, picture in pictures.items()}
    rates = {name: fooled(picture) for name, picture in pictures.items()}
    return ModelAttack(image, perturbation.image, perturbation.history, answers, rates)
