"""Layers, transforms, attacks and comparisons with any arguments: right, or a clear error."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from hypothesis import strategies as st

from tests.fuzz.test_images import bools, names, warp_options
from tests.support import hostile_arguments as wild
from tests.support.fuzzing import Case, fuzz
from warpkit import attacks, transforms, validation
from warpkit.nn import SpatialTransformer, Warp

ONCE: dict[str, Any] = {"steps": 1, "samples": 1}
OURS = ("image", "interpolation", "border")
"""The arguments of transforms that torchvision does not read, in ways and words of its own."""


class Mean(torch.nn.Module):
    """A localization with one feature, for images of any size."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.float().flatten(1).mean(1, keepdim=True)


def average(x: torch.Tensor) -> torch.Tensor:
    """An objective that also accepts integers."""
    return x.double().mean()


several = st.integers(1, 3)
ranges = st.sampled_from(((0.0, 0.0), (-9.0, 9.0), (1.0, 1.0), (0.5, 2.0), (2.0, 1.0), (1, 2)))
units = st.one_of(
    wild.tensors((2, 3, 5, 6)), wild.tensors((1, 4, 5)), wild.images((3, 4)).filter(torch.is_tensor)
)
objectives = st.sampled_from(
    (
        average,
        torch.sum,
        lambda x: average(x.double() ** 2),
        lambda x: x,
        lambda x: average(x.detach()),
    )
)
generators = st.one_of(st.none(), st.integers(0, 9).map(torch.Generator().manual_seed))
distributions = st.one_of(
    st.just(attacks.AffineDistribution(angle=(-9, 9), translation=(-1, 1))),
    wild.matrices((2, 2, 3), batch=(2,)),
)
descents = {
    "steps": several,
    "samples": several,
    "step_size": st.sampled_from((0.01, 0.1, 1e30, 0.0)),
    "chunk": st.one_of(st.none(), several),
    "generator": generators,
    "progress": st.just(False),
    "quantize": bools,
    "interpolation": names["interpolation"],
    "arithmetic": names["arithmetic"],
}


def layer(image: Any, matrix: Any, **options: Any) -> Any:
    return Warp(**options)(image, matrix)


def transformer(localization: Any, size: Any, images: Any, **options: Any) -> Any:
    """Apply a spatial transformer of any size to images."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that all samples are outside the image
        look = SpatialTransformer(localization, size, **options)
        return None if getattr(images, "is_meta", False) else look(images)


def random_affine(image: Any, degrees: Any, **options: Any) -> Any:
    return transforms.RandomAffine(degrees, **options)(image)


def random_perspective(image: Any, distortion_scale: Any, **options: Any) -> Any:
    return transforms.RandomPerspective(distortion_scale, p=1.0, **options)(image)


def sampled(n: Any, size: Any, generator: Any = None, **ranges: Any) -> Any:
    return attacks.AffineDistribution(**ranges).sample(n, size=size, generator=generator)


def perturbed(**arguments: Any) -> Any:
    """The perturbed image, whose range and distance are checked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the gradient is 0
        found = attacks.optimize_perturbation(**(ONCE | arguments))
    assert found.image.shape == arguments["image"].shape
    assert ((found.image >= 0) & (found.image <= 1)).all()
    if arguments.get("norm", "linf") == "linf":
        assert (found.delta.abs().double() <= float(arguments["epsilon"])).all()
    return found.image


def patched(**arguments: Any) -> Any:
    """The patch, whose limits are checked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = attacks.optimize_patch(**(ONCE | arguments))
    low, high = arguments.get("limits", (0.0, 1.0))
    assert ((found.patch >= low) & (found.patch <= high)).all()
    return found.patch


compared_with = {k: warp_options[k] for k in ("size", "interpolation", "inverse", "border_value")}
WARPS = ("warp_affine: ", "warp_perspective: ")
SHOWN = (*WARPS, "warpkit.transforms: ", "No image, video, mask", "Input tensor")
PASTES = ("paste_patches: ", *WARPS)

CASES = {
    "Warp": Case(
        layer,
        {"image": wild.images(), "matrix": wild.matrices()},
        warp_options,
        says=WARPS,
    ),
    "SpatialTransformer": Case(
        transformer,
        {
            "localization": st.just(Mean()),
            "size": wild.sizes,
            "images": st.one_of(wild.tensors((2, 3, 4, 5), (torch.float32,)), wild.images()),
        },
        {
            "transform": st.sampled_from(("affine", "similarity", "perspective")),
            "features": st.sampled_from((None, 1)),
            "interpolation": names["interpolation"],
            "border": names["border"],
        },
        says=WARPS,
    ),
    "RandomAffine": Case(
        random_affine,
        {"image": wild.images(), "degrees": st.sampled_from((0, 30.0, (-90, 90)))},
        {
            "translate": st.sampled_from((None, (0.1, 0.5))),
            "scale": st.sampled_from((None, (0.5, 2.0))),
            "shear": st.sampled_from((None, 9, (-9, 9), (-9, 9, -5, 5))),
            "interpolation": names["interpolation"],
            "fill": st.sampled_from((0, 0.5, None, (0.1, 0.2, 0.3), {})),
            "center": st.sampled_from((None, (1, 2))),
            "border": names["border"],
        },
        says=SHOWN,
        spoiled=OURS,
    ),
    "RandomPerspective": Case(
        random_perspective,
        {"image": wild.images(), "distortion_scale": st.floats(0, 1)},
        {
            "interpolation": names["interpolation"],
            "fill": st.sampled_from((0, 0.5, None, (0.1, 0.2, 0.3))),
            "border": names["border"],
        },
        says=SHOWN,
        spoiled=OURS,
    ),
    "AffineDistribution": Case(
        sampled,
        {"n": several, "size": wild.sizes},
        {
            "generator": generators,
            **dict.fromkeys(("angle", "scale", "shear", "translation"), ranges),
        },
        says=("AffineDistribution.sample: ",),
    ),
    "expectation": Case(
        attacks.expectation,
        {"objective": objectives, "image": units, "distribution": distributions},
        {k: descents[k] for k in ("samples", "chunk", "generator", "quantize")} | warp_options,
        says=WARPS,
    ),
    "optimize_perturbation": Case(
        perturbed,
        {"objective": objectives, "image": units, "epsilon": st.sampled_from((8 / 255, 0.3, 2.0))},
        {
            "distribution": st.one_of(st.none(), distributions),
            "norm": st.sampled_from(("linf", "l2", "l1")),
            "optimizer": st.sampled_from((None, "sign", "gradient", torch.optim.Adam)),
        }
        | descents,
        says=WARPS,
    ),
    "optimize_patch": Case(
        patched,
        {
            "objective": objectives,
            "images": units,
            "boxes": wild.boxes(3),
            "image_index": st.one_of(st.none(), st.just([0, 0, 1])),
            "patch_size": wild.sizes,
        },
        {
            "distribution": st.one_of(st.none(), distributions),
            "limits": st.sampled_from(((0.0, 1.0), (0.2, 0.7), (0.7, 0.2))),
            "start": st.one_of(st.none(), wild.tensors((3, 2, 2))),
            "mask": st.one_of(st.none(), wild.tensors((1, 2, 2))),
        }
        | descents,
        says=PASTES,
    ),
    "compare_with_opencv": Case(
        validation.compare_with_opencv,
        {"image": wild.images(), "matrix": wild.matrices()},
        compared_with
        | {
            # OpenCV 5 takes seconds to reflect distant positions
            "border": st.sampled_from(("constant", "replicate", "wrap", "zeros", "reflection")),
            "arithmetic": st.sampled_from(("auto", "exact", "opencv4", "opencv5")),
        },
        says=WARPS,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_calls_work_or_reject_any_arguments(name):
    fuzz(name, CASES[name], least=20)


@pytest.mark.parametrize("images", wild.WRONG, ids=lambda wrong: repr(wrong)[:12])
def test_a_suite_without_photographs_is_rejected(images):
    with pytest.raises((ValueError, TypeError), match="parity_suite: "):
        validation.parity_suite(images)
