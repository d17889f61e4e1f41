"""Several transforms, sampled once: Fused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import dedent
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import v2

from warpkit.core import checks
from warpkit.core.caller_warnings import warn
from warpkit.core.mistakes import without_warnings
from warpkit.transforms.batches import BatchRun
from warpkit.transforms.borders import border_of
from warpkit.transforms.composed import ComposedMap
from warpkit.transforms.crops import CROPS, shows_border
from warpkit.transforms.not_fusible import warn_if_not_fusible
from warpkit.transforms.runs import FUSED, Run, border_giver


class Fused(v2.Compose):
    """torchvision.transforms.v2.Compose whose geometric transforms are sampled once.

    Consecutive transforms of `warpkit.transforms`, and torchvision's own v2.Pad and v2.RandomCrop,
    form a run: they are drawn as Compose draws them, from the same seed, and composed to one map, a
    matrix, or a flow if an ElasticTransform is among them. Images, videos and masks are sampled
    once by this map, and boxes and key points moved once. Every other transform or function ends a
    run, and is applied unchanged. A warning names torchvision's geometric ones among these.

    Args:
        transforms: one or more, in their order.
        per_image: draw separately for every image of a batch (B, C, H, W), one image after another,
            and warp them in one call. Videos are then (B, T, C, H, W), masks (B, H, W) or (B, N, H,
            W), key points (B, ..., 2); boxes raise an error, because torchvision has no batches of
            them.

    A run shows the whole image within the last canvas, including parts that Compose would cut off
    at an intermediate canvas and fill. Outside the image it shows the border and fill of its
    transforms, which must be the same (CenterCrop pads with 0); a Pad or a RandomCrop with another
    border, which copies pixels, is a separate run, and causes a warning. The interpolation is the
    finest of its transforms', "nearest" < "bilinear" < "bicubic" < "lanczos4", and nearest for
    masks. If the map shrinks, each output pixel is averaged (`warp_affine`'s antialias), unless a
    Resize has antialias=False or all is nearest. A run that only flips, crops, pads, rotates by
    multiples of 90 degrees or moves by whole pixels blends no values. If a Resize or a
    RandomResizedCrop is the only transform that samples, its own filter is used (not with
    per_image, after a crop that drops a part, or if padding follows such a crop). A run of one
    transform is that transform.

    In a run of several, a box becomes the tight box of its outline under the whole map, also under
    a flow, clamped once if torchvision would clamp it; for a rotated box the corners move, and
    torchvision's rectangle encloses them. Key points have the origin that each torchvision
    transform uses: pixel centres in flips, the corner elsewhere.

    Raises:
        ValueError, TypeError: with the argument, what it must be and what it got.

    >>> from warpkit.transforms import RandomHorizontalFlip, RandomRotation
    >>> turn, flip = RandomRotation((90, 90)), RandomHorizontalFlip(p=1.0)
    >>> Fused([turn, flip])(torch.tensor([[[1, 2], [3, 4]]], dtype=torch.uint8))
    tensor([[[4, 2],
             [3, 1]]], dtype=torch.uint8)
    """

    def __init__(
        self, transforms: Sequence[Callable[..., Any]], *, per_image: bool = False
    ) -> None:
        wanted = "a sequence of at least one transform"
        if not isinstance(transforms, Sequence) or isinstance(transforms, str):
            checks.fail("Fused", "transforms", wanted, type(transforms).__name__, TypeError)
        if not transforms:
            checks.fail("Fused", "transforms", wanted, "none")
        for k, transform in enumerate(transforms):
            if isinstance(transform, type):
                wanted = f"of instances ({transform.__name__}(...), not {transform.__name__})"
                got = f"the class {transform.__name__} at [{k}]"
                checks.fail("Fused", "transforms", wanted, got, TypeError)
            if not callable(transform):
                got = f"{transform!r:.60} at [{k}]"
                checks.fail("Fused", "transforms", "objects that can be called", got, TypeError)
        super().__init__(list(transforms))
        self.per_image = checks.check_bool("Fused", "per_image", per_image)
        self._made: tuple[list[Any], list[Callable[..., Any]]] = ([], [])
        _ = self._pieces  # raises errors about impossible runs now

    @property
    def _pieces(self) -> list[Callable[..., Any]]:
        """The runs and the other transforms between them, from the current list."""
        made_of, pieces = self._made
        if [*map(id, made_of)] != [*map(id, self.transforms)]:
            pieces = _pieces(self.transforms, BatchRun if self.per_image else Run)
            self._made = list(self.transforms), pieces
        return pieces

    def forward(self, *inputs: Any) -> Any:
        """Transform the inputs, as torchvision's Compose does."""
        if not inputs:
            checks.fail("Fused", "inputs", "an image, or more", "none", TypeError)
        several = len(inputs) > 1
        looked = False
        for piece in self._pieces:
            is_run = isinstance(piece, Run)
            call = piece.__call__
            outputs = (without_warnings(call) if looked and is_run else call)(*inputs)
            looked = looked or is_run
            inputs = outputs if several else (outputs,)
        return inputs if several else inputs[0]

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw for these inputs; "draws" has the params of each transform, or None."""
        return self._run("make_params").make_params(flat_inputs)

    def map(self, params: dict[str, Any], size: Sequence[int]) -> Tensor:
        """The map of the drawn `params` for images of `size` (H, W), float64.

        (3, 3), source -> destination, or with an elastic transform the flow (h, w, 2) that
        `warp_flow` takes. With per_image a batch of them, (B, 3, 3) or (B, h, w, 2).
        """
        maps = self._maps("map", params, size)
        mappings = [each.mapping for each in maps]
        return torch.stack(mappings) if self.per_image else mappings[0]

    def output_size(self, params: dict[str, Any], size: Sequence[int]) -> tuple[int, int]:
        """(H, W) of what images of `size` (H, W) become."""
        return self._maps("output_size", params, size)[0].size

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One input under the drawn `params`."""
        run = self._run("transform")
        self._check_params(params)
        return run.transform(inpt, params)

    def extra_repr(self) -> str:
        """One transform per line; torch indents them, and writes one alone behind the name."""
        lines = dedent(super().extra_repr())
        return f"{lines}\nper_image=True" if self.per_image else lines

    def _maps(
        self, method: str, params: dict[str, Any], size: Sequence[int]
    ) -> Sequence[ComposedMap]:
        """The map of each image, or the only one."""
        run = self._run(method)
        self._check_params(params)
        canvas = checks.check_size("Fused", "size", size)
        return (
            run.maps(params, canvas)
            if isinstance(run, BatchRun)
            else [run.composed(params, canvas)]
        )

    def _check_params(self, params: Any) -> None:
        """They must come from `make_params`, for the same number of transforms."""
        draws = params.get("draws") if isinstance(params, dict) else None
        each = draws if self.per_image and isinstance(draws, list) else [draws]
        if not all(isinstance(d, list) and len(d) == len(self.transforms) for d in each):
            wanted = f"what make_params returns for these {len(self.transforms)} transforms"
            checks.fail("Fused", "params", wanted, f"{params!r:.60}")

    def _run(self, method: str) -> Run:
        """The only piece, which has one map."""
        (piece, *more) = self._pieces
        if more or not isinstance(piece, Run):
            others = [type(t).__name__ for t in self.transforms if not is_fused(t)]
            wanted = f"only geometric ones for {method}, which needs one run"
            got = f"{others[0]} among them" if others else f"{len(more) + 1} runs, of two borders"
            checks.fail("Fused", "transforms", wanted, got)
        return piece


def is_fused(transform: Any) -> bool:
    """Whether a transform can be part of a run."""
    if not isinstance(transform, FUSED):
        return False
    theirs = next(kind for kind in FUSED if isinstance(transform, kind))
    return type(transform).transform is theirs.transform


def _pieces(transforms: Sequence[Any], kind: type[Run]) -> list[Callable[..., Any]]:
    """The runs, as long as possible, and the other transforms between them."""
    pieces: list[Callable[..., Any]] = []
    stretch: list[Any] = []
    for k, transform in enumerate((*transforms, None)):
        if is_fused(transform):
            stretch.append(transform)
            continue
        pieces += _runs(stretch, k - len(stretch), kind)
        stretch = []
        if transform is not None:
            warn_if_not_fusible(k, transform)
            pieces.append(transform)
    return pieces


def _runs(stretch: Sequence[Any], place: int, kind: type[Run]) -> list[Callable[..., Any]]:
    """Consecutive transforms, the first at `place`: one run, except for torchvision's padding with
    another border, which copies pixels and is a separate run."""
    giver = border_giver(stretch)
    runs: list[list[Any]] = [[]]
    for k, transform in enumerate(stretch, place):
        if isinstance(transform, CROPS) and shows_border(transform):
            one, two = border_of(giver), border_of(transform)
            if one != two:
                text = f"Fused: transforms[{k}] is torchvision's {type(transform).__name__}, whose "
                text += f"padding is not fused: {two}, and {one} in {type(giver).__name__} "
                warn(text + "(put v2.Identity() next to it if this is intended)")
                runs += [[transform], []]
                continue
        runs[-1].append(transform)
    pieces: list[Callable[..., Any]] = []
    for run in filter(None, runs):
        pieces.append(kind(run, place))
        place += len(run)
    return pieces
