"""torchvision's geometric transforms that are not fused warn once, at the caller's line."""

from __future__ import annotations

import inspect
import warnings

import pytest
import torch
from torchvision import transforms as v1
from torchvision.transforms import v2

from warpkit import transforms
from warpkit.transforms import Fused, RandomHorizontalFlip

FLIP = RandomHorizontalFlip(1.0)
ALONE = ": the transforms before and after it are two runs"
UNFUSED = {
    "resize": (v2.Resize((3, 4)), "; warpkit.transforms.Resize takes the same arguments and is"),
    "flip": (v2.RandomHorizontalFlip(), "; warpkit.transforms.RandomHorizontalFlip takes the same"),
    "first resize": (v1.Resize((3, 4)), "; warpkit.transforms.Resize takes the same arguments"),
    "first crop": (v1.RandomCrop(3), "; torchvision.transforms.v2.RandomCrop takes the same"),
    "first pad": (v1.Pad(3), "; torchvision.transforms.v2.Pad takes the same arguments and is"),
    "zoom": (v2.RandomZoomOut(), ALONE),
    "crop by boxes": (v2.RandomIoUCrop(), ALONE),
    "shortest": (v2.RandomShortestSize(5), ALONE),
    "jitter": (v2.ScaleJitter((5, 5)), ALONE),
    "random size": (v2.RandomResize(3, 5), ALONE),
    "five": (v2.FiveCrop(3), ALONE),
    "ten": (v2.TenCrop(3), ALONE),
}


def line() -> int:
    """The caller's line number."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


@pytest.mark.parametrize("name", UNFUSED)
def test_an_unfused_transform_gets_a_warning(name: str):
    transform, advice = UNFUSED[name]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fused, at = Fused([FLIP, transform]), line()
        fused(torch.ones(3, 8, 8)) if name in ("resize", "zoom", "first crop") else None
    (warning,) = said
    kind = type(transform).__name__
    text = f"Fused: transforms[1] is torchvision's {kind}, which is not fused{advice}"
    assert str(warning.message).startswith(text)
    assert (warning.filename, warning.lineno) == (__file__, at)


def test_every_geometric_transform_is_fused_or_named():
    """All in torchvision's module of geometry, in this version."""
    module = inspect.getmodule(v2.Resize)
    assert module is not None
    kinds = [
        kind
        for kind in vars(v2).values()
        if inspect.isclass(kind) and inspect.getmodule(kind) is module
    ]
    assert len(kinds) >= 18
    named = {type(transform).__name__ for transform, _ in UNFUSED.values()}
    for kind in kinds:
        name = kind.__name__
        assert name in named or name in ("Pad", "RandomCrop") or hasattr(transforms, name), name


def test_subclasses_are_named_unless_they_override_transform():
    class Mine(v2.ScaleJitter):
        pass

    class Other(v2.ScaleJitter):
        def transform(self, inpt, params):
            return inpt

    with pytest.warns(UserWarning, match="is torchvision's ScaleJitter"):
        Fused([Mine((5, 5))])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Fused([Other((5, 5)), v2.ColorJitter(), v2.ToDtype(torch.float32), lambda image: image])


def test_transforms_added_later_are_named_at_the_call():
    """Also inside torchvision's Compose, and only once."""
    fused = Fused([FLIP])
    fused.transforms.append(v2.Resize((3, 4)))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        outer = v2.Compose([fused])
        result, at = outer(torch.ones(3, 8, 8)), line()
        outer(torch.ones(3, 8, 8))
    assert result.shape == (3, 3, 4)
    (warning,) = said
    assert (warning.filename, warning.lineno) == (__file__, at)
