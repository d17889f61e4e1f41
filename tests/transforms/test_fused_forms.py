"""Fused: kinds of input, workers, pickling, and errors."""

from __future__ import annotations

import copy
import pickle
import re

import PIL.Image
import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader
from torchvision import tv_tensors
from torchvision.transforms import v2

from tests.support.inputs import noise
from tests.support.runs_by_hand import (
    long_run,
)
from tests.support.tolerances import TOLERANCE
from warpkit.transforms import (
    CenterCrop,
    Fused,
    RandomAffine,
    RandomHorizontalFlip,
    RandomPerspective,
    RandomResizedCrop,
    RandomRotation,
    Resize,
)


def test_labels_are_never_blended_and_every_kind_is_kept():
    fused = Fused(
        [
            RandomRotation(40, "bilinear", fill={tv_tensors.Mask: 7, "others": 0}),
            RandomPerspective(0.3, 1.0, "bilinear", fill={tv_tensors.Mask: 7, "others": 0}),
            Resize((9, 11)),
        ]
    )
    labels = torch.tensor([0, 100, 2**62 + 1]).repeat_interleave(4)[:, None].repeat(1, 16)
    inputs = (
        PIL.Image.fromarray(noise(12, 16, 3, dtype=torch.uint8).numpy()),
        {"masks": [tv_tensors.Mask(labels), tv_tensors.Mask(torch.zeros(0, 12, 16))]},
        tv_tensors.Video(noise(2, 3, 12, 16, dtype=torch.uint8)),
        "name",
    )
    image, masks, video, name = fused(*inputs)
    assert (image.mode, image.size, name) == ("RGB", (11, 9), "name")
    assert set(masks["masks"][0].flatten().tolist()) == {0, 7, 100, 2**62 + 1}
    assert masks["masks"][1].shape == (0, 9, 11)
    assert isinstance(video, tv_tensors.Video)
    assert video.shape == (2, 3, 9, 11)


class Pictures(torch.utils.data.Dataset):
    """A data set whose draws are seeded by the index, and so known for workers."""

    def __init__(self) -> None:
        self.fused = Fused([RandomRotation(30, "bilinear"), RandomPerspective(), Resize((8, 9))])

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Tensor:
        torch.manual_seed(index)
        return self.fused(noise(1, 16, 18, seed=index))


def test_forked_workers_give_the_same_images():
    """core/test_concurrency tests spawned workers."""
    pictures = Pictures()
    loaded = DataLoader(pictures, num_workers=1, multiprocessing_context="fork")
    got = torch.cat(list(loaded))
    wanted = torch.stack([pictures[k] for k in range(4)])
    torch.testing.assert_close(got, wanted, rtol=0, atol=TOLERANCE["torchvision float64"])


def test_fused_inside_compose_copied_and_pickled():
    fused = long_run(interpolation="bilinear")
    image = noise(3, 26, 30, dtype=torch.uint8)
    wanted = None
    for made in (fused, copy.deepcopy(fused), pickle.loads(pickle.dumps(fused))):
        torch.manual_seed(3)
        got = v2.Compose([made, v2.ToDtype(torch.float32, scale=True)])(image)
        wanted = got if wanted is None else wanted
        assert torch.equal(got, wanted)
    assert "RandomPerspective(p=0.5" in repr(fused)


TURN = RandomRotation(10)


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: Fused([]), "Fused: `transforms` must be a sequence of at least one transform"),
        (lambda: Fused(TURN), "Fused: `transforms` must be a sequence of at least one transform"),
        (
            lambda: Fused([TURN, RandomRotation]),
            (
                "Fused: `transforms` must be of instances (RandomRotation(...), not "
                "RandomRotation), got the class RandomRotation at [1]"
            ),
        ),
        (
            lambda: Fused([3]),
            "Fused: `transforms` must be objects that can be called, got 3 at [0]",
        ),
        (lambda: Fused([TURN], per_image=1), "Fused: `per_image` must be True or False"),
        (
            lambda: Fused([TURN, RandomAffine(3, fill=1)]),
            (
                "Fused: `transforms` must be of one border and fill in a run, which is sampled "
                "once (another transform, such as v2.Identity(), ends a run), got "
                "border='constant', "
                "fill=0.0 in RandomRotation (transforms[0]) and border='constant', fill=1.0 in "
                "RandomAffine (transforms[1])"
            ),
        ),
        (
            lambda: Fused([v2.Identity(), TURN, Resize(3), RandomPerspective(border="reflect")]),
            (
                "in RandomRotation (transforms[1]) and border='reflect' in RandomPerspective "
                "(transforms[3])"
            ),
        ),
        (
            lambda: Fused([Resize(3, "area"), TURN]),
            "'lanczos4') if they are sampled as one, got 'area' in Resize (transforms[0])",
        ),
        (
            lambda: Fused([RandomRotation(10, fill=[1, 2]), Resize(5)])(torch.ones(3, 9, 9)),
            "RandomRotation: `fill` must be a number, or 3, for the channels of a Tensor",
        ),
        (
            lambda: Fused([CenterCrop(12), RandomRotation(10, fill=2)])(torch.ones(3, 9, 9)),
            (
                "fill=2.0 in RandomRotation (transforms[1]) and CenterCrop (transforms[0]), which "
                "pads (9, 9) to (12, 12) with 0"
            ),
        ),
        (
            lambda: Fused([TURN, v2.Grayscale()]).map({}, (3, 3)),
            (
                "Fused: `transforms` must be only geometric ones for map, which needs one run, "
                "got Grayscale among them"
            ),
        ),
        (
            lambda: Fused([TURN]).map({"draws": [None, None]}, (3, 3)),
            "Fused: `params` must be what make_params returns for these 1 transforms, got {'draws'",
        ),
        (lambda: Fused([TURN]).map({"draws": [None]}, 3), "Fused: `size` must be"),
        (
            lambda: Fused([TURN, Resize(9)])(PIL.Image.new("P", (9, 9))),
            "Fused: `inpt` must be a PIL image of one of the modes",
        ),
        (
            lambda: Fused([TURN, RandomResizedCrop(9)])(
                tv_tensors.Image(torch.ones(3, 9, 9)), tv_tensors.Mask(torch.ones(8, 9))
            ),
            "Found multiple HxW dimensions in the sample",
        ),
    ],
)
def test_errors(build, text: str):
    with pytest.raises((ValueError, TypeError), match=re.escape(text)):
        build()


def test_the_list_of_transforms_may_be_changed():
    fused = Fused([RandomHorizontalFlip(0.0)])
    image = torch.full((1, 2, 2), 255, dtype=torch.uint8)
    assert fused(image).dtype == torch.uint8
    fused.transforms.append(v2.ToDtype(torch.float32, scale=True))
    assert fused(image).dtype == torch.float32


def test_a_subclass_that_overrides_transform_is_a_barrier():
    class Black(RandomRotation):
        def transform(self, inpt, params):
            return torch.zeros_like(inpt)

    fused = Fused([Black((3, 3)), RandomHorizontalFlip(1.0)])
    assert fused(torch.ones(1, 4, 4)).max() == 0
    with pytest.raises(ValueError, match=r"Fused: `transforms` must be only .* got Black"):
        fused.make_params([torch.ones(1, 4, 4)])
