"""Layers: the identity at the start, transforms as by F.affine_grid, learning, the warning."""

from __future__ import annotations

import copy
import re
import warnings
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import warpkit as wk
from tests.support.inputs import noise
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE
from warpkit.nn import LOOK_EVERY, NUMBERS, SpatialTransformer, Warp


class Given(nn.Module):
    """A localization that returns the same numbers for any image."""

    def __init__(self, features: Tensor) -> None:
        super().__init__()
        self.features = nn.Parameter(features)

    def forward(self, images: Tensor) -> Tensor:
        return self.features.expand(len(images), -1)


def transformer(
    numbers: Tensor, transform: str, size: tuple[int, int], **options
) -> SpatialTransformer:
    """A transformer whose head passes `numbers` on."""
    module = SpatialTransformer(
        Given(numbers), size, transform=transform, features=numbers.shape[-1]
    )
    nn.init.eye_(module.head.weight)
    return module.double()


NUMBERS_OF = {
    "affine": [0.1, -0.2, 0.3, 0.15, 0.05, -0.1],
    "similarity": [0.23, 0.41, -0.12, 0.31],
    "perspective": [0.1, -0.2, 0.3, 0.15, 0.05, -0.1, 0.1, -0.15],
}


@pytest.mark.parametrize("transform", NUMBERS)
@pytest.mark.parametrize("features", [None, 12])
def test_a_transformer_starts_at_the_identity(transform: str, features: int | None):
    images = noise(2, 1, 3, 4)
    module = SpatialTransformer(nn.Flatten(), (3, 4), transform=transform, features=features)
    module.double()
    torch.testing.assert_close(module(images), images, rtol=0, atol=TOLERANCE["reference float64"])
    resized = SpatialTransformer(nn.Flatten(), (9, 8), transform=transform, border="replicate")
    expected = F.interpolate(images, (9, 8), mode="bilinear")
    torch.testing.assert_close(
        resized.double()(images), expected, rtol=0, atol=TOLERANCE["reference float64"]
    )


@pytest.mark.parametrize("size", [(5, 7), (4, 9)])
@pytest.mark.parametrize("transform", ["affine", "similarity"])
def test_affine_parameters_are_affine_grids_theta(transform: str, size: tuple[int, int]):
    images = noise(2, 3, 5, 7)
    module = transformer(torch.tensor(NUMBERS_OF[transform]), transform, size)
    theta = module.theta(images)
    grid = F.affine_grid(theta, [2, 3, *size], align_corners=False)
    expected = F.grid_sample(images, grid, align_corners=False)
    torch.testing.assert_close(
        module(images), expected, rtol=0, atol=TOLERANCE["grid_sample float64"]
    )


def test_perspective_parameters_match_their_definition():
    images = noise(2, 3, 5, 7)
    module = transformer(torch.tensor(NUMBERS_OF["perspective"]), "perspective", (4, 6))
    matrix = module.theta(images)[0]
    assert matrix[2, 2] == 1
    y, x = torch.meshgrid(
        *(((torch.arange(n).double() + 0.5) * 2 / n - 1) for n in (4, 6)), indexing="ij"
    )
    u, v, w = (matrix @ torch.stack((x, y, torch.ones_like(x))).flatten(1)).unflatten(1, (4, 6))
    grid = torch.stack((u / w, v / w), -1).expand(2, 4, 6, 2)
    expected = F.grid_sample(images, grid, align_corners=False)
    torch.testing.assert_close(
        module(images), expected, rtol=0, atol=TOLERANCE["grid_sample float64"]
    )


def test_a_similarity_keeps_angles_in_pixels():
    """a = cos - 1, b = sin: a rotation by 90 degrees of an image that is not square."""
    images = noise(1, 1, 3, 5)
    module = transformer(torch.tensor([-1.0, 1.0, 0.0, 0.0]), "similarity", (3, 5))
    turn = wk.rotation_matrix(torch.tensor([2.0, 1.0]).double(), 90.0)
    torch.testing.assert_close(
        module(images), wk.warp_affine(images, turn), rtol=0, atol=TOLERANCE["reference float64"]
    )


@pytest.mark.parametrize("transform", NUMBERS_OF)
def test_gradients_reach_image_and_parameters(transform: str):
    images = noise(2, 1, 3, 4).requires_grad_()
    module = transformer(torch.tensor(NUMBERS_OF[transform]).double(), transform, (2, 3))
    numbers = module.localization.features

    def run(images: Tensor, features: Tensor, weight: Tensor) -> Tensor:
        given = {"localization.features": features, "head.weight": weight}
        return torch.func.functional_call(module, given, images)

    inputs = (images, numbers, module.head.weight)
    assert torch.autograd.gradcheck(run, inputs, check_forward_ad=True, fast_mode=True)
    one_by_one = partial(run, images.detach(), weight=module.head.weight.detach())
    assert torch.autograd.gradcheck(one_by_one, numbers)
    assert gradgradcheck(run, inputs)


def test_the_first_step_moves_the_head():
    module = SpatialTransformer(nn.Flatten(), (4, 4), features=16)
    module(noise(3, 1, 4, 4).float()).square().sum().backward()
    assert (module.head.weight.grad != 0).any()


def test_a_transformer_learns_a_shift():
    torch.manual_seed(0)
    scene = F.interpolate(noise(1, 1, 6, 6, seed=3).float(), (24, 24), mode="bicubic")
    target = wk.warp_affine(scene, [[1, 0, -3.0], [0, 1, 2.0]], border="replicate")
    module = SpatialTransformer(nn.Flatten(), (24, 24), features=576, border="replicate")
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
    for _ in range(150):
        optimizer.zero_grad()
        (module(scene) - target).square().mean().backward()
        optimizer.step()
    theta = module.theta(scene)[0]
    expected = torch.tensor([[1, 0, 0.25], [0, 1, -1 / 6]])
    torch.testing.assert_close(theta, expected, rtol=0, atol=TOLERANCE["learned theta"])


@pytest.mark.parametrize("shift", [0.9, 1.2])
def test_a_batch_that_samples_mostly_outside_gets_a_warning(shift: float):
    images = noise(4, 1, 6, 6)
    module = transformer(torch.tensor([0, 0, shift, 0, 0, 0]).double(), "affine", (6, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module.eval()(images)
        module.train()
        if shift < 1:
            module(images)
            return
    with pytest.warns(UserWarning, match="SpatialTransformer: 4 of 4 images sample") as seen:
        module(images)
    assert seen[0].filename == __file__  # the caller's line


def test_samples_are_checked_always_on_the_cpu_and_every_100th_time_elsewhere():
    """A check would wait for an accelerator's queue, so it runs every hundredth time there."""
    module = transformer(torch.tensor([0, 0, 1.2, 0, 0, 0]).double(), "affine", (6, 6))
    for _ in range(5):
        with pytest.warns(UserWarning, match="2 of 2 images sample mostly"):
            module(noise(2, 1, 6, 6))
    module.looks = lambda device: False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module(noise(2, 1, 6, 6))
    module = SpatialTransformer(nn.Flatten(), (6, 6), features=36)
    due = [call for call in range(1, 301) if module.looks("cuda")]
    assert due == [100, 200, 300]
    assert all(module.looks("cpu") for _ in range(5))


def test_samples_are_not_checked_without_values():
    module = SpatialTransformer(nn.Flatten(), (6, 6), features=36).to("meta")
    module.calls = LOOK_EVERY - 2  # so that one of three calls would check
    for _ in range(3):
        assert module(torch.zeros(2, 1, 6, 6, device="meta")).shape == (2, 1, 6, 6)


class Half(nn.Module):
    """A localization whose features come in bfloat16, as a network's do under autocast."""

    def __init__(self, features: Tensor) -> None:
        super().__init__()
        self.features = features

    def forward(self, images: Tensor) -> Tensor:
        return self.features.bfloat16() if torch.is_autocast_enabled("cpu") else self.features


@pytest.mark.parametrize("transform", NUMBERS_OF)
@pytest.mark.parametrize("lazy", [True, False])
def test_autocast_does_not_round_the_matrix_to_half_types(transform: str, lazy: bool):
    """At 224 pixels bfloat16 would move corners by up to half a pixel."""
    features = noise(3, 12).bfloat16().float()
    module = SpatialTransformer(
        Half(features), (224, 224), transform=transform, features=None if lazy else 12
    )
    images = noise(3, 1, 224, 224).float()
    module.theta(images)
    nn.init.normal_(module.head.weight, std=0.2, generator=torch.Generator().manual_seed(1))
    plain, image = module.theta(images), module(images)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(module.theta(images), plain)
        assert torch.equal(module(images), image)
    assert plain.dtype == torch.float32


@pytest.mark.parametrize("transform", NUMBERS_OF)
def test_the_matrix_of_a_half_precision_module_is_computed_in_float32(transform: str):
    numbers = torch.tensor(NUMBERS_OF[transform]).half()
    images = noise(2, 3, 5, 7)
    module = transformer(numbers, transform, (5, 7))
    theta = module.half().theta(images.half())
    assert theta.dtype == torch.float32
    # float16 has 11 bits: numbers up to 1/2 are off by 1.2e-4, numbers above 1 by 4.9e-4
    torch.testing.assert_close(theta, module.double().theta(images).float(), rtol=0, atol=1e-6)


def test_no_warning_if_less_than_half_of_a_batch_is_outside():
    theta = torch.zeros(4, 6).double()
    theta[:2, 2] = 5.0

    class Some(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return theta

    module = SpatialTransformer(Some(), (6, 6), features=6).double()
    nn.init.eye_(module.head.weight)
    module(noise(4, 1, 6, 6))
    theta[2, 2] = torch.nan
    with pytest.warns(UserWarning, match="3 of 4 images"):
        module(noise(4, 1, 6, 6))


def test_a_transformer_can_be_saved_copied_and_printed():
    module = SpatialTransformer(nn.Flatten(), (3, 4))
    module(noise(1, 1, 3, 4).float())
    other = SpatialTransformer(nn.Flatten(), (3, 4), features=12)
    other.load_state_dict(module.state_dict())
    assert set(module.state_dict()) == {"head.weight", "head.bias"}
    copy.deepcopy(module)(noise(1, 1, 3, 4).float())
    assert "size=(3, 4), transform='affine', interpolation='bilinear'" in repr(module)


def test_a_compiled_transformer_gives_the_same_result():
    module = SpatialTransformer(nn.Flatten(), (3, 4), features=12)
    images = noise(2, 1, 3, 4).float()
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(images), module(images))


def test_the_warp_layer_equals_the_functions():
    image, matrix = noise(3, 5, 6), wk.rotation_matrix((2.0, 2.0), 30.0)
    layer = Warp(size=(4, 4), border="reflect")
    expected = wk.warp_affine(image, matrix, size=(4, 4), border="reflect")
    assert torch.equal(layer(image, matrix), expected)
    full = torch.tensor([[1, 0, 0], [0, 1, 0], [0.01, 0, 1]])
    expected = wk.warp_perspective(image, full, size=(4, 4), border="reflect")
    assert torch.equal(layer(image, full), expected)
    assert repr(layer) == "Warp(size=(4, 4), border='reflect')"


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"interpolation": "linear"}, ValueError, "`interpolation` must be one of 'nearest', "),
        ({"border": "mirror"}, ValueError, "`border` must be one of 'constant', "),
        ({"border": "transparent"}, ValueError, "`border` must be a border other than 'transpa"),
        ({"backend": "opencl"}, ValueError, "`backend` must be one of 'auto', "),
    ],
)
@pytest.mark.parametrize("layer", ["Warp", "SpatialTransformer"])
def test_layers_reject_bad_names_on_construction(layer: str, options, error, text: str):
    start = f"^{re.escape(f'{layer}: {text}')}"
    with pytest.raises(error, match=start):
        Warp(**options) if layer == "Warp" else SpatialTransformer(nn.Flatten(), (4, 4), **options)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"size": 4}, TypeError, "`size` must be (H, W), two integers of at least 1, got 4"),
        ({"arithmetic": "opencv3"}, ValueError, "`arithmetic` must be one of 'exact', "),
        ({"inverse": 1}, TypeError, "`inverse` must be True or False, got 1"),
        ({"antialias": 0}, ValueError, "`antialias` must be True, False or a number of samples "),
        ({"antialias": 2, "arithmetic": "opencv5"}, ValueError, "`antialias` must be False with "),
        ({"image_gradient": "ste"}, ValueError, "`image_gradient` must be one of 'exact', 'strai"),
        ({"mode": "bilinear"}, TypeError, "`options` must be options of the warps: size, interpo"),
        ({"image": 3}, TypeError, "`options` must be options of the warps: size, interpolation, "),
    ],
)
def test_the_warp_layer_rejects_bad_options_on_construction(options, error, text: str):
    with pytest.raises(error, match=f"^{re.escape(f'Warp: {text}')}"):
        Warp(**options)


def test_the_warp_layer_accepts_every_option():
    background = noise(3, 4, 4, seed=2)
    layer = Warp(size=(4, 4), border="transparent", background=background)
    image, matrix = noise(3, 5, 6), wk.rotation_matrix((2.0, 2.0), 30.0)
    options = {"size": (4, 4), "border": "transparent", "background": background}
    assert torch.equal(layer(image, matrix), wk.warp_affine(image, matrix, **options))
    Warp(antialias=True, border="zeros", border_value=(1, 2, 3), inverse=True, backend="cpu")


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (
            lambda: SpatialTransformer(torch.mean, (4, 4)),
            TypeError,
            "`localization` must be a torch.nn.Module, got builtin_function_or_method",
        ),
        (
            lambda: SpatialTransformer(nn.Flatten(), 4),
            TypeError,
            "`size` must be (H, W), two integers of at least 1, got 4",
        ),
        (
            lambda: SpatialTransformer(nn.Flatten(), (4, 4), transform="rigid"),
            ValueError,
            (
                "`transform` must be one of 'affine', 'similarity', 'perspective', 'thin_plate', "
                "got 'rigid'"
            ),
        ),
        (
            lambda: SpatialTransformer(nn.Identity(), (4, 4))(torch.zeros(2, 1, 4, 4)),
            ValueError,
            (
                "`localization` must be a module that returns (2, F) for images (2, 1, 4, 4), "
                "got (2, 1, 4, 4)"
            ),
        ),
        (
            lambda: SpatialTransformer(nn.Flatten(), (4, 4), features=9)(torch.zeros(2, 1, 4, 4)),
            ValueError,
            (
                "`localization` must be a module that returns (2, 9) for images (2, 1, 4, 4), "
                "got (2, 16)"
            ),
        ),
        (
            lambda: SpatialTransformer(nn.Flatten(), (4, 4))(torch.zeros(1, 4, 4)),
            ValueError,
            "`images` must be of shape (B, C, H, W), got (1, 4, 4)",
        ),
    ],
)
def test_arguments_are_checked(build, error: type[Exception], text: str):
    with pytest.raises(error, match=f"^{re.escape('SpatialTransformer: ' + text)}$"):
        build()
