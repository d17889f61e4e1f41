"""Provides the scenes of each step: the same images, or minibatches of an iterable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from warpkit.attacks.norm_ball import check_unit
from warpkit.core import checks
from warpkit.core.mistakes import without_warnings
from warpkit.engine.definitions.objects import canvases
from warpkit.patches import arguments

ITEM = "(images, boxes, image_index) or (images, boxes, image_index, extra)"


class Batch(NamedTuple):
    """Images, boxes, the image of each (N,), and extra objective arguments."""

    images: canvases.Images
    """(B, C, H, W), or a tuple of (C, H_i, W_i)."""
    boxes: Tensor
    """(N, 4), (N, 5) or (N, 4, 2)."""
    image_index: Tensor
    extra: tuple[Any, ...] = ()


def make_batch(name: str, images: object, boxes: Any, index: Any, *extra: Any) -> Batch:
    """A batch of checked arguments."""
    batch = check_scenes(name, images)
    data = without_warnings(arguments.images)(name, batch)
    boxes, index, _ = arguments.boxes(name, boxes, index, data)
    if len(boxes) == 0:
        wanted = "of shape (N, 4), (N, 5) or (N, 4, 2), at least one"
        checks.fail(name, "boxes", wanted, checks.shape_of(boxes))
    return Batch(batch, boxes, index, extra)


def check_scenes(name: str, images: object) -> canvases.Images:
    """Images (B, C, H, W), or a list of (C, H_i, W_i), in [0, 1]."""
    if not isinstance(images, checks.LISTS):
        return check_unit(name, "images", images)
    arguments.images(name, images)  # as a list
    return tuple(check_unit(name, f"images[{k}]", image)[0] for k, image in enumerate(images))


def is_iterable_of_batches(images: object) -> bool:
    """Whether `images` is an iterable of minibatches: a list of tensors is one of images."""
    if isinstance(images, checks.LISTS) and any(isinstance(item, Tensor) for item in images):
        return False
    return isinstance(images, Iterable) and not isinstance(
        images, (Tensor, np.ndarray, str, bytes, dict)
    )


@dataclass(frozen=True)
class SameImages:
    """The same images at every step; boxes of any kind, or a function that draws them."""

    name: str
    images: Any
    boxes: Any
    index: Any

    def check(self) -> canvases.Images:
        """The images, checked, and the boxes too if nothing has to be drawn for them."""
        if not callable(self.boxes):
            return make_batch(self.name, self.images, self.boxes, self.index).images
        return check_scenes(self.name, self.images)

    def draw(self, generator: torch.Generator | None) -> Batch:
        """The step's batch."""
        if callable(self.boxes):
            return make_batch(self.name, self.images, self.boxes(generator), self.index)
        return without_warnings(make_batch)(self.name, self.images, self.boxes, self.index)


class BatchStream:
    """Minibatches in order; an iterable that can be iterated again starts over at its end.

    With a generator, each pass has its own random state, seeded by it: a DataLoader's draws from
    torch's global generator, to shuffle or in its dataset, are the same in a resumed run, and do
    not affect the caller's.
    """

    def __init__(self, name: str, batches: Iterable[Any], steps: int, state: Any) -> None:
        self.name, self.batches, self.steps = name, batches, steps
        self.seed: int | None = None
        self.loader: list[Tensor] = []
        self.position = 0
        """Batches of this pass that steps have used."""
        self._used = 0
        self._iterator: Iterator[Any] | None = None
        self._random: Tensor | None = None
        self._pending: Batch | None = None
        if state is not None:
            self._replay(state)

    @property
    def state(self) -> dict[str, Any]:
        """The state from which a later stream of the same iterable continues."""
        return {"position": self.position, "seed": self.seed, "loader": self.loader}

    def peek(self, generator: torch.Generator | None) -> Batch:
        """The next batch, which stays the next."""
        if self._pending is None:
            self._pending = self._checked(self._next(generator))
        return self._pending

    def draw(self, generator: torch.Generator | None) -> Batch:
        """The step's batch."""
        batch = self.peek(generator)
        self._pending = None
        self.position += 1
        self._used += 1
        return batch

    def _checked(self, item: Any) -> Batch:
        if not isinstance(item, tuple | list) or len(item) not in (3, 4):
            got = f"{len(item)} things" if isinstance(item, tuple | list) else type(item).__name__
            wanted = f"a tensor (B, C, H, W), a list of (C, H, W), or an iterable of {ITEM}"
            checks.fail(self.name, "images", wanted, f"one of {got}", TypeError)
        return make_batch(self.name, *item)

    def _next(self, generator: torch.Generator | None) -> Any:
        if self._iterator is None:
            self._begin(generator)
        item = self._advance()
        if item is END and iter(self.batches) is not self.batches and self.position > 0:
            self._begin(generator)
            item = self._advance()
        if item is END:
            wanted = f"an iterable with a batch for each of the {self.steps} steps, or one that "
            wanted += "can be gone through again (a list, a DataLoader)"
            checks.fail(self.name, "images", wanted, f"one that ended after {self._used}")
        return item

    def _begin(self, generator: torch.Generator | None) -> None:
        """Start a pass."""
        self.seed = None
        if generator is not None:
            bound = {"generator": generator, "device": generator.device}
            self.seed = int(torch.randint(2**62, (), **bound))
        self.loader = [g.get_state() for g in generators_of(self.batches)]
        self._iterate()

    def _iterate(self) -> None:
        self.position = 0
        if self.seed is not None:
            self._random = torch.Generator().manual_seed(self.seed).get_state()
        self._iterator = self._with_random(lambda: iter(self.batches))

    def _advance(self) -> Any:
        iterator = self._iterator
        assert iterator is not None
        return self._with_random(lambda: next(iterator, END))

    def _with_random(self, function: Callable[[], Any]) -> Any:
        """Call a function with this pass's state of torch's global generator."""
        if self._random is None:
            return function()
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self._random)
            result = function()
            self._random = torch.get_rng_state()
        return result

    def _replay(self, state: Any) -> None:
        """Restore the position of an earlier stream."""
        keys = {"position", "seed", "loader"}
        if not isinstance(state, dict) or state.keys() != keys:
            wanted = "the state of an earlier result of the same call, with batches"
            checks.fail(self.name, "resume", wanted, repr(state)[:60], TypeError)
        self.seed, self.loader = state["seed"], list(state["loader"])
        for generator, before in zip(generators_of(self.batches), self.loader, strict=False):
            generator.set_state(before)
        self._iterate()
        while self.position < state["position"]:
            if self._advance() is END:
                wanted = f"the iterable of the run that is resumed, {state['position']} batches"
                checks.fail(self.name, "images", wanted, f"one that ended after {self.position}")
            self.position += 1
            self._used += 1


END: Any = object()


def generators_of(batches: object) -> list[torch.Generator]:
    """The generators that a DataLoader and its sampler draw from, each once."""
    sampler = getattr(batches, "sampler", None)
    candidates = [getattr(owner, "generator", None) for owner in (batches, sampler)]
    return list({id(g): g for g in candidates if isinstance(g, torch.Generator)}.values())
