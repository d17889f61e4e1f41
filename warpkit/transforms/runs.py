"""Runs of geometric transforms: drawn one after another, composed to one map, sampled once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

from warpkit.core import checks, exports
from warpkit.core.caller_warnings import warn
from warpkit.core.mistakes import without_warnings
from warpkit.engine.definitions.rules import INTERPOLATIONS
from warpkit.transforms import crops
from warpkit.transforms.affine import RandomAffine, RandomRotation
from warpkit.transforms.base import check_arrays
from warpkit.transforms.borders import border_of
from warpkit.transforms.composed import ComposedMap, compose, is_whole
from warpkit.transforms.crops import CROPS, shows_border
from warpkit.transforms.elastic import ElasticTransform
from warpkit.transforms.exact import CenterCrop, RandomHorizontalFlip, RandomVerticalFlip
from warpkit.transforms.images import check_planes, fill_of, has_pixels, through
from warpkit.transforms.labels import EDGES, LABELS, move_boxes, move_keypoints
from warpkit.transforms.perspective import RandomPerspective
from warpkit.transforms.resized import RandomResizedCrop, Resize
from warpkit.transforms.sampling import RunSampling, sample

FLIPS = (RandomHorizontalFlip, RandomVerticalFlip)
RESIZES = (Resize, RandomResizedCrop)
BORDERED = (RandomAffine, RandomRotation, RandomPerspective, ElasticTransform)
GEOMETRIC = (*FLIPS, CenterCrop, *RESIZES, *BORDERED)
FUSED = (*GEOMETRIC, *CROPS)
COPIES = (*FLIPS, CenterCrop, *CROPS)
Draws = list[dict[str, Any] | None]
"""The params of each transform; None if it is skipped."""


class Step(NamedTuple):
    """A transform that was drawn, in a run."""

    transform: Any
    params: dict[str, Any]
    size: tuple[int, int]
    """(H, W) of its input."""

    def output_size(self) -> tuple[int, int]:
        """(H, W) of its output."""
        if isinstance(self.transform, CROPS):
            return crops.output_size(self.transform, self.params, self.size)
        of = getattr(self.transform, "output_size", None)
        return self.size if of is None else of(self.params, self.size)

    def map(self) -> Tensor:
        """Where pixels go: (3, 3), source -> destination, or a flow (h, w, 2)."""
        if isinstance(self.transform, CROPS):
            return crops.map_of(self.transform, self.params)
        return self.transform.map(self.params, self.size)

    def margins(self) -> tuple[int, ...]:
        """How far a copy's canvas extends beyond its input, in pixels; < 0 if it cuts."""
        if not isinstance(self.transform, (CenterCrop, *CROPS)):
            return ()
        (height, width), (h, w) = self.size, self.output_size()
        wider, higher = w - width, h - height
        if isinstance(self.transform, CenterCrop):
            return wider, higher
        left, top = crops.offset_of(self.transform, self.params)
        return left, top, wider - left, higher - top

    def pads(self) -> bool:
        """Whether it shows more than its input, on its own."""
        return any(margin > 0 for margin in self.margins())

    def cuts(self) -> bool:
        """Whether it drops a part of its input, on its own."""
        if isinstance(self.transform, RandomResizedCrop):
            return (self.params["height"], self.params["width"]) != self.size
        return any(margin < 0 for margin in self.margins())


class Run(v2.Transform):
    """Consecutive geometric transforms, the first of them at `place` of a list."""

    composes_one = False
    """Whether a single transform is sampled as a run, not on its own."""

    def __init__(self, transforms: Sequence[Any], place: int) -> None:
        super().__init__()
        self.transforms, self.place = list(transforms), place
        bordered = [t for t in self.transforms if isinstance(t, BORDERED)]
        self.bordered = border_giver(self.transforms)
        for other in bordered[1:]:
            self._check_border(bordered[0], other)
        smooth = [t for t in self.transforms if isinstance(t, (*RESIZES, *BORDERED))]
        self.interpolation = self._finest([t.interpolation for t in smooth])
        resizes = [t for t in smooth if isinstance(t, RESIZES)]
        several = len(self.transforms) > 1 or len(resizes) > 0  # one is sampled as it samples
        self.antialias = several and all(t.antialias for t in resizes)
        self.not_exact = next((t for t in resizes if t.arithmetic != "exact"), None)

    def _named(self, transform: Any) -> str:
        index = next(k for k, t in enumerate(self.transforms) if t is transform)
        return f"{type(transform).__name__} (transforms[{self.place + index}])"

    def _check_border(self, first: Any, other: Any) -> None:
        """One sampling has one border."""
        one, two = border_of(first), border_of(other)
        if one != two:
            wanted = "of one border and fill in a run, which is sampled once (another transform, "
            wanted += "such as v2.Identity(), ends a run)"
            got = f"{one} in {self._named(first)} and {two} in {self._named(other)}"
            checks.fail("Fused", "transforms", wanted, got)

    def _finest(self, names: Sequence[str]) -> str:
        """The one interpolation of a run."""
        alone = len(self.transforms) == 1 and not self.composes_one
        for transform in self.transforms:
            name = getattr(transform, "interpolation", None)
            if name not in (None, *INTERPOLATIONS) and not alone:
                wanted = "of interpolations that a warp has ("
                wanted += ", ".join(map(repr, INTERPOLATIONS)) + ") if they are sampled as one"
                checks.fail("Fused", "transforms", wanted, f"{name!r} in {self._named(transform)}")
        order = [name for name in INTERPOLATIONS if name in names]
        return order[-1] if order else (names[0] if names else "nearest")

    def sizes_of(self, inputs: Sequence[Any]) -> list[tuple[int, int]]:
        """(H, W) of every input that has one."""
        sized = (x for x in inputs if has_pixels(x) or isinstance(x, LABELS))
        return [(size[0], size[1]) for size in map(v2.functional.get_size, sized)]

    def draw(self, sizes: Sequence[tuple[int, int]]) -> Draws:
        """Params as torchvision draws them for inputs of `sizes`, one transform after another."""
        exports.refuse(
            "Fused",
            "because it inspects the map that it composes",
            "export the transforms one after another, or warp by a matrix that it is given",
        )
        draws: Draws = []
        for transform in self.transforms:
            p = getattr(transform, "p", None)
            if p is not None and torch.rand(1) >= p:
                draws.append(None)
                continue
            sized = [torch.empty(0, *size, device="cpu") for size in sizes]
            params = transform.make_params(sized)
            draws.append(params)
            sizes = [Step(transform, params, size).output_size() for size in sizes]
        return draws

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        """Reject arrays in place of images."""
        check_arrays("Fused", flat_inputs)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """{"draws": the draws of each transform}."""
        return {"draws": self.draw(self.sizes_of(flat_inputs)), "composed": {}}

    def steps(self, draws: Draws, size: tuple[int, int]) -> list[Step]:
        """The drawn steps for images of `size` (H, W)."""
        steps: list[Step] = []
        for transform, params in zip(self.transforms, draws, strict=True):
            if params is not None:
                steps.append(Step(transform, params, size))
                size = steps[-1].output_size()
        return steps

    def composed(self, params: dict[str, Any], size: tuple[int, int]) -> ComposedMap:
        """The combined map of images of `size` (H, W), computed once per size."""
        maps = params.setdefault("composed", {})
        if size not in maps:
            steps = self.steps(params["draws"], size)
            mappings = [step.map() for step in steps]
            maps[size] = compose(mappings, steps[-1].output_size() if steps else size)
        return maps[size]

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One input under the drawn `params`."""
        check_arrays("Fused", [inpt])
        draws = params["draws"]
        if all(draw is None for draw in draws):
            return inpt
        if len(draws) == 1:
            return self.transforms[0].transform(inpt, draws[0])
        if not has_pixels(inpt) and not isinstance(inpt, LABELS):
            return one_by_one(inpt, self.transforms, draws)  # another library's type
        height, width = v2.functional.get_size(inpt)
        steps = self.steps(draws, (height, width))
        if has_pixels(inpt):
            once = self._samples_once(steps, params, (height, width))
            if not once or isinstance(self.bordered, BORDERED):  # whatever was drawn this time
                self.check_padding(steps, type(inpt))
            if once:
                check_planes("Fused", inpt)
                return without_warnings(one_by_one)(inpt, self.transforms, draws)
            return self._sampled(inpt, self.composed(params, (height, width)))
        composed = self.composed(params, (height, width))
        if isinstance(inpt, tv_tensors.BoundingBoxes):
            clamps = any(not isinstance(step.transform, (*FLIPS, Resize)) for step in steps)
            return move_boxes(inpt, composed, clamps)
        return move_keypoints(inpt, composed, self.offsets(steps))

    def offsets(self, steps: Sequence[Step]) -> list[tuple[float, float]]:
        """The origin of torchvision's key points in each: see `move_keypoints`."""
        return [(0.0, 0.0) if isinstance(s.transform, FLIPS) else EDGES for s in steps]

    def check_padding(self, steps: Sequence[Step], kind: type) -> None:
        """CenterCrop's padding with 0 cannot be combined with another border."""
        if self.bordered is None or border_of(self.bordered).is_zero(kind):
            return
        for step in steps:
            if isinstance(step.transform, CenterCrop) and step.pads():
                wanted = "of one border and fill in a run, which is sampled once"
                got = f"{border_of(self.bordered)} in {self._named(self.bordered)} and "
                got += f"{self._named(step.transform)}, which pads {step.size} "
                checks.fail("Fused", "transforms", wanted, f"{got}to {step.output_size()} with 0")

    def _samples_once(
        self, steps: Sequence[Step], params: dict[str, Any], size: tuple[int, int]
    ) -> bool:
        """Whether at most a resize samples, and Compose cuts off nothing that the run would show.

        Nothing is cut off before the resize, whose filter reads beyond a cut, and nothing pads
        a cut.
        """
        samplers = [k for k, s in enumerate(steps) if not isinstance(s.transform, COPIES)]
        cuts = [k for k, step in enumerate(steps) if step.cuts()]
        if cuts and any(step.pads() for step in steps[cuts[0] + 1 :]):
            return False
        if not samplers:
            return True
        first = samplers[0]
        transform = steps[first].transform
        is_resize = len(samplers) == 1 and isinstance(transform, RESIZES)
        if not is_resize or (cuts and cuts[0] < first):
            return False
        same = transform.interpolation == self.interpolation
        return same and not is_whole(self.composed(params, size).mapping)

    def _sampled(self, inpt: Any, composed: ComposedMap) -> Any:
        """An image, a video or a mask under one map."""
        options = self.options(inpt)

        def sampled(image: Tensor, interpolation: str) -> Tensor:
            return sample(image, composed, options._replace(interpolation=interpolation))

        moves = is_whole(composed.mapping)
        if not moves:
            self.warn_of_arithmetic(inpt)
        interpolation = "nearest" if moves else options.interpolation
        return through("Fused", inpt, interpolation, sampled, composed.size)

    def warn_of_arithmetic(self, inpt: Any) -> None:
        """Warn once that a run sampled as one does not use the requested arithmetic."""
        resize, is_mask = self.not_exact, isinstance(inpt, tv_tensors.Mask)
        if resize is None or is_mask:
            return
        self.not_exact = None
        text = f"Fused: arithmetic={resize.arithmetic!r} of {self._named(resize)} has no effect "
        text += "if the run is sampled as one, which is exact (v2.Identity() next to it ends the "
        warn(text + "run)")

    def options(self, inpt: Any) -> RunSampling:
        """How an input is sampled."""
        owner = self.bordered
        border = "constant" if owner is None else border_of(owner).name
        of = None if owner is None else fill_of(type(owner).__name__, owner, inpt)
        return RunSampling(self.interpolation, border, of, self.antialias)


def border_giver(transforms: Sequence[Any]) -> Any:
    """The transform that determines the run's border: the first that warps, or else that pads."""
    warps = [t for t in transforms if isinstance(t, BORDERED)]
    pads = [t for t in transforms if isinstance(t, CROPS) and shows_border(t)]
    return next(iter([*warps, *pads]), None)


def one_by_one(inpt: Any, transforms: Sequence[Any], draws: Draws) -> Any:
    """Apply the drawn transforms one after another."""
    for transform, params in zip(transforms, draws, strict=True):
        inpt = inpt if params is None else transform.transform(inpt, params)
    return inpt
