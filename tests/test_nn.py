"""Layers: the identity at the start, the transforms by F.affine_grid, learning, and the warning."""

from __future__ import annotations

import copy
import re
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import warpkit as wk
from tests.cases import noise
from tests.tolerances import TOLERANCE
from warpkit.nn import NUMBERS, SpatialTransformer, Warp


class Given(nn.Module):
    """A localization that says the same whatever it is shown."""

    def __init__(self, features: Tensor) -> None:
        super().__init__()
        self.features = nn.Parameter(features)

    def forward(self, images: Tensor) -> Tensor:
        return self.features.expand(len(images), -1)


def transformer(
    numbers: Tensor, transform: str, size: tuple[int, int], **options
) -> SpatialTransformer:
    """One whose head passes `numbers` on."""
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
def test_it_starts_at_the_identity(transform: str, features: int | None):
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
def test_theta_is_that_of_affine_grid(transform: str, size: tuple[int, int]):
    images = noise(2, 3, 5, 7)
    module = transformer(torch.tensor(NUMBERS_OF[transform]), transform, size)
    theta = module.theta(images)
    grid = F.affine_grid(theta, [2, 3, *size], align_corners=False)
    expected = F.grid_sample(images, grid, align_corners=False)
    torch.testing.assert_close(
        module(images), expected, rtol=0, atol=TOLERANCE["grid_sample float64"]
    )


def test_perspective_by_its_definition():
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
    """a = cos - 1, b = sin: a turn by 90 degrees of an image that is no square."""
    images = noise(1, 1, 3, 5)
    module = transformer(torch.tensor([-1.0, 1.0, 0.0, 0.0]), "similarity", (3, 5))
    turn = wk.rotation_matrix(torch.tensor([2.0, 1.0]).double(), 90.0)
    torch.testing.assert_close(
        module(images), wk.warp_affine(images, turn), rtol=0, atol=TOLERANCE["reference float64"]
    )


@pytest.mark.parametrize("transform", NUMBERS)
def test_gradients_reach_everything(transform: str):
    images = noise(2, 1, 4, 5).requires_grad_()
    module = transformer(torch.tensor(NUMBERS_OF[transform]).double(), transform, (3, 4))
    numbers = module.localization.features

    def run(images: Tensor, features: Tensor, weight: Tensor) -> Tensor:
        given = {"localization.features": features, "head.weight": weight}
        return torch.func.functional_call(module, given, images)

    inputs = (images, numbers, module.head.weight)
    assert torch.autograd.gradcheck(run, inputs, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(run, inputs)


def test_the_first_step_moves_the_head():
    module = SpatialTransformer(nn.Flatten(), (4, 4), features=16)
    module(noise(3, 1, 4, 4).float()).square().sum().backward()
    assert (module.head.weight.grad != 0).any()


def test_it_learns_a_shift():
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
def test_it_warns_where_most_of_a_batch_is_outside(shift: float):
    images = noise(4, 1, 6, 6)
    module = transformer(torch.tensor([0, 0, shift, 0, 0, 0]).double(), "affine", (6, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module.eval()(images)
        module.train()
        if shift < 1:
            module(images)
            return
    with pytest.warns(UserWarning, match="SpatialTransformer: 4 of 4 images are sampled"):
        module(images)


def test_it_does_not_warn_for_the_lesser_part():
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


def test_it_is_saved_copied_and_shown():
    module = SpatialTransformer(nn.Flatten(), (3, 4))
    module(noise(1, 1, 3, 4).float())
    other = SpatialTransformer(nn.Flatten(), (3, 4), features=12)
    other.load_state_dict(module.state_dict())
    assert set(module.state_dict()) == {"head.weight", "head.bias"}
    copy.deepcopy(module)(noise(1, 1, 3, 4).float())
    assert "size=(3, 4), transform='affine', interpolation='bilinear'" in repr(module)


def test_compiled_it_is_the_same():
    module = SpatialTransformer(nn.Flatten(), (3, 4), features=12)
    images = noise(2, 1, 3, 4).float()
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(images), module(images))


def test_warp_is_the_function():
    image, matrix = noise(3, 5, 6), wk.rotation_matrix((2.0, 2.0), 30.0)
    layer = Warp(size=(4, 4), border="reflect")
    expected = wk.warp_affine(image, matrix, size=(4, 4), border="reflect")
    assert torch.equal(layer(image, matrix), expected)
    full = torch.tensor([[1, 0, 0], [0, 1, 0], [0.01, 0, 1]])
    expected = wk.warp_perspective(image, full, size=(4, 4), border="reflect")
    assert torch.equal(layer(image, full), expected)
    assert repr(layer) == "Warp(size=(4, 4), border='reflect')"


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
            "`transform` must be one of 'affine', 'similarity', 'perspective', got 'rigid'",
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
