"""Transforms and steps of attacked pipelines with any arguments.

`FUZZ_EXAMPLES=10000 pytest tests/fuzz/test_family.py` runs other and more cases of each.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from hypothesis import strategies as st

import warpkit as wk
from tests.fuzz.test_images import bools, names
from tests.fuzz.test_models import ONCE, average, descents, generators, ranges, several
from tests.support import hostile_arguments as wild
from tests.support.fuzzing import Case, fuzz, tame
from warpkit import attacks, transforms

OURS = ("image", "interpolation", "border")
"""The arguments of transforms that torchvision does not read, in ways and words of its own."""

shown = {
    # the others would each compile a kernel for every type; test_images draws them all
    "interpolation": st.sampled_from(("nearest", "bilinear", "bilinear", "area")),
    "fill": st.sampled_from((0, 0.5, None, (0.1, 0.2, 0.3), {})),
    "border": names["border"],
}
sizes = st.one_of(wild.sizes, st.integers(1, 6))
filters = st.sampled_from(("nearest", "bilinear", "bicubic", "lanczos", "area", "box", 2, "x"))


def applied(kind: str) -> Any:
    """A transform made with any arguments and applied to one image."""

    def call(image: Any, **options: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return getattr(transforms, kind)(**options)(image)

    return call


def fused(image: Any, kinds: Any, per_image: Any = False) -> Any:
    """A `Fused` of transforms, which samples once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return transforms.Fused(kinds, per_image=per_image)(image)


def row(image: Any) -> Any:
    return image if isinstance(image, torch.Tensor) else torch.zeros(1, 3, 4, 4)


parts = st.lists(
    st.sampled_from(
        (
            transforms.RandomAffine(20, (0.1, 0.1)),
            transforms.RandomRotation(90, expand=True),
            transforms.RandomPerspective(0.4, p=0.7),
            transforms.RandomHorizontalFlip(),
            transforms.RandomVerticalFlip(1.0),
            transforms.Resize(4, max_size=6),
            transforms.RandomResizedCrop((3, 4)),
            transforms.CenterCrop((3, 5)),
            transforms.ElasticTransform(9.0, 0.1),
            torch.nn.Identity(),
        )
    ),
    min_size=1,
    max_size=4,
)
kinds = {
    "RandomRotation": (
        {"degrees": st.sampled_from((0, 90.0, (-90, 90)))},
        {**shown, "expand": bools, "center": st.sampled_from((None, (1, 2)))},
    ),
    "RandomResizedCrop": (
        {"size": sizes},
        {"interpolation": filters, "antialias": st.sampled_from((True, False, None))},
    ),
    "Resize": (
        {"size": sizes},
        {
            "interpolation": filters,
            "max_size": st.sampled_from((None, 7, 9)),
            "antialias": st.sampled_from((True, False, None)),
        },
    ),
    "ElasticTransform": (
        {"alpha": st.sampled_from((0.0, 9.0, (5.0, 1.0))), "sigma": st.sampled_from((0.1, 0.3))},
        shown,
    ),
    "RandomHorizontalFlip": ({}, {"p": st.sampled_from((0.0, 0.5, 1.0))}),
    "RandomVerticalFlip": ({}, {"p": st.sampled_from((0.0, 0.5, 1.0))}),
    "CenterCrop": ({"size": sizes}, {}),
}
SAYS = (
    "warpkit.transforms: ",
    "No image, video, mask",
    "Input tensor",
    "resize: ",
    "warp_affine: ",
)
SAYS += ("warp_perspective: ", "warp_flow: ", "max_size should only be")
FAMILY = {
    name: Case(applied(name), {"image": wild.images(), **needed}, options, says=SAYS, spoiled=OURS)
    for name, (needed, options) in kinds.items()
} | {
    "Fused": Case(
        fused,
        {"image": wild.images(), "kinds": parts},
        {"per_image": bools},
        says=(*SAYS, *(f"{name}: " for name in (*kinds, "RandomAffine", "RandomPerspective"))),
    )
}

views = st.one_of(wild.tensors((2, 3, 4, 5)), wild.tensors((1, 1, 8, 9)), wild.images((3, 4)))
steps = st.lists(
    st.sampled_from(
        (
            attacks.jpeg(40),
            attacks.jpeg(90, subsampling="4:4:4"),
            attacks.normalize([0.5], [0.2]),
            attacks.normalize((0.1, 0.2, 0.3), [0.2]),
            attacks.reverse_channels,
            attacks.to_uint8,
            attacks.on_floats(lambda x: 1 - x),
            attacks.on_uint8(lambda x: x // 64 * 64, lambda x: x),
            lambda x: wk.resize(x, (3, 4), arithmetic="pillow"),
            lambda x: x.float() / 255,
            lambda x: x.cpu() if x.dtype == torch.uint8 else x,
        )
    ),
    max_size=4,
)


def piped(steps: Any, images: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return attacks.Pipeline(*steps)(images)


def shown_by(images: Any, generator: Any = None, **options: Any) -> Any:
    """A view with changed colours, which must be in [0, 1]."""
    result = attacks.Photometric(**options)(images, generator=generator)
    if tame(images):
        assert ((result >= 0) & (result <= 1)).all()
    return result


def bent(**arguments: Any) -> Any:
    """A warped image, none of whose pixels may move further than the limit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = attacks.optimize_flow(**(ONCE | arguments))
    reach = found.flow.double().norm(dim=-1)
    assert (reach <= float(arguments["epsilon"]) * (1 + 1e-5)).all()
    return found.image


charts = st.integers(0, 3).flatmap(lambda n: wild.tensors((n, 3)))
ATTACKS = {
    "Pipeline": Case(
        piped,
        {"steps": steps, "images": views},
        {},
        says=("jpeg: ", "normalize: ", "resize: ", "to_uint8: ", "on_"),
        spoiled=("images",),
    ),
    "jpeg": Case(
        lambda images, **options: attacks.jpeg(**options)(images),
        {"images": views},
        {"quality": st.integers(1, 100), "subsampling": st.sampled_from(("4:2:0", "4:4:4"))},
        says=("jpeg(",),
    ),
    "normalize": Case(
        lambda images, mean, std: attacks.normalize(mean, std)(images),
        {"images": views, "mean": st.sampled_from(([0.5], (0.1, 0.2, 0.3))), "std": st.just([0.3])},
        {},
    ),
    "to_uint8": Case(attacks.to_uint8, {"images": views}, {}),
    "reverse_channels": Case(attacks.reverse_channels, {"images": views}, {}),
    "Photometric": Case(
        shown_by,
        {"images": views},
        {
            "generator": generators,
            "noise": wild.numbers,
            **dict.fromkeys(("brightness", "contrast", "gamma"), ranges),
        },
        says=("Photometric.",),
    ),
    "PerspectiveDistribution": Case(
        lambda n, size, generator=None, **ranges: attacks.PerspectiveDistribution(**ranges).sample(
            n, size=size, generator=generator
        ),
        {"n": several, "size": wild.sizes},
        {
            "generator": generators,
            "corners": st.sampled_from(((0.0, 0.1), (-0.5, 0.5), (0.5, 0.5), (0.0, 0.6))),
            **dict.fromkeys(("angle", "scale", "shear", "translation"), ranges),
        },
        says=("PerspectiveDistribution.sample: ",),
    ),
    "Cylinder": Case(
        lambda radius, size: attacks.Cylinder(radius).flow(size),
        {"radius": st.one_of(wild.numbers, st.floats(0.1, 9)), "size": wild.sizes},
        {},
        says=("Cylinder.flow: ",),
    ),
    "total_variation": Case(attacks.total_variation, {"patch": views}, {}),
    "nonprintability": Case(attacks.nonprintability, {"patch": views, "colours": charts}, {}),
    "optimize_flow": Case(
        bent,
        {
            "objective": st.just(average),
            "image": st.one_of(wild.tensors((2, 3, 5, 6)), wild.tensors((1, 4, 5))),
            "epsilon": st.sampled_from((0.5, 2.0, 1e30)),
        },
        {
            "smoothness": st.sampled_from((0.25, 1e-30, 3.0)),
            "spacing": st.integers(1, 9),
            "optimizer": st.sampled_from(("sign", "gradient", torch.optim.Adam)),
            "pipeline": st.sampled_from((None, attacks.Pipeline(), attacks.jpeg(50))),
            "photometric": st.sampled_from((None, attacks.Photometric(noise=0.1))),
        }
        | descents,
        says=("warp_affine: ", "warp_perspective: ", "jpeg: ", "Pipeline"),
    ),
}


@pytest.mark.parametrize("name", FAMILY)
def test_transforms_work_or_reject_any_arguments(name):
    fuzz(name, FAMILY[name], least=15)


@pytest.mark.parametrize("name", ATTACKS)
def test_steps_of_attacks_work_or_reject_any_arguments(name):
    fuzz(name, ATTACKS[name], least=15)
