"""Views of the sphere, compared with py360convert and equilib: python -m benchmarks.spheres

Every case first proves that its ways agree, in the peer's own convention (`Convention`), then times
them as `harness` says. py360convert caches the maps of its last views, and equilib its grid: both
are timed with their caches, and py360convert also for a new view.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import cv2
import numpy as np
import torch
from torch import Tensor

import warpkit as wk
from benchmarks import harness
from benchmarks.harness import Case
from warpkit import camera
from warpkit.engine.definitions import sphere as definition

SPHERE, SIZE, FIELD = (1080, 2160), (1080, 1920), 90.0
YAW, PITCH = 40.0, 15.0
TURN = camera.rotation(yaw=YAW, pitch=PITCH)


def smooth() -> Tensor:
    """A smooth picture (3, H, W) of the sphere: it changes by at most 8e-5 per 1/64 of a pixel."""
    x, y, z = torch.broadcast_tensors(*definition.directions(SPHERE, None))
    waves = torch.stack(((3 * x + y).sin(), x * y * z, (2 * z - y).cos()))
    return (0.5 + 0.4 * waves).float()


class Convention(NamedTuple):
    """A peer's convention, in warpkit's terms."""

    camera: Tensor
    """(3, 3)."""
    moved: int = 0
    """The offset of the picture in pixels, right and down."""

    def view(self, sphere: Tensor) -> Tensor:
        """The peer's view of a sphere (C, H, W), computed by warpkit."""
        rolled = sphere.roll((-self.moved, -self.moved), (-2, -1))
        return camera.from_sphere(rolled, SIZE, camera_matrix=self.camera, rotation=TURN)


def matrix(focal: float, x: float, y: float) -> Tensor:
    """A camera (3, 3) of square pixels."""
    return torch.tensor([[focal, 0, x], [0, focal, y], [0, 0, 1]], dtype=torch.float64)


def conventions() -> dict[str, Convention]:
    """The peers' fields of view from pixel centre to centre, principal points and offsets."""
    (height, width), half = SIZE, math.tan(math.radians(FIELD) / 2)
    middle = (width - 1) / 2, (height - 1) / 2
    return {
        "py360convert": Convention(matrix((width - 1) / 2 / half, *middle)),
        "equilib": Convention(matrix(width / 2 / half, width / 2, height / 2), 1),
    }


def by_py360convert(picture: np.ndarray) -> np.ndarray:
    """The view of a picture (H, W, C) with square pixels; its map is cached."""
    from py360convert import e2p

    along_y = math.atan(math.tan(math.radians(FIELD) / 2) * (SIZE[0] - 1) / (SIZE[1] - 1))
    return e2p(picture, (FIELD, 2 * math.degrees(along_y)), YAW, PITCH, SIZE)


def anew(picture: np.ndarray) -> np.ndarray:
    """The same without the cache."""
    from py360convert.utils import EquirecSampler

    EquirecSampler.from_perspective.cache_clear()
    return by_py360convert(picture)


def by_remap(sphere: Tensor, matrix: Tensor) -> Tensor:
    """The handwritten way: positions in float64 and `warpkit.remap`, wrong at poles and seam."""
    (height, width), (h, w) = sphere.shape[-2:], SIZE
    y, x = torch.meshgrid(*(torch.arange(n).double() for n in SIZE), indexing="ij")
    a, b, c = (torch.stack((x, y, torch.ones(h, w)), -1) @ matrix.mT).unbind(-1)
    u = torch.atan2(a, c) * (width / (2 * math.pi)) + (width - 1) / 2
    v = torch.atan2(b, torch.hypot(a, c)) * (height / math.pi) + (height - 1) / 2
    return wk.remap(sphere, torch.stack((u, v), -1), border=("replicate", "wrap"))


def cases() -> Iterator[Case]:
    """Views of float32, without gradients and with."""
    from equilib import Equi2Pers

    sphere, turn = smooth(), TURN.clone()
    picture = sphere.permute(1, 2, 0).contiguous().numpy()
    equilib, rots = Equi2Pers(*SIZE, FIELD), {"roll": 0.0, "pitch": 0.0, "yaw": 0.0}
    rots |= {"pitch": -math.radians(PITCH), "yaw": -math.radians(YAW)}  # left and down
    focal = SIZE[1] / 2 / math.tan(math.radians(FIELD) / 2)
    to_rays = TURN.mT @ matrix(focal, (SIZE[1] - 1) / 2, (SIZE[0] - 1) / 2).inverse()

    def view() -> Tensor:
        return camera.from_sphere(sphere, SIZE, field_of_view=FIELD, rotation=turn)

    peers = {"py360convert": by_py360convert(picture).transpose(2, 0, 1)}
    peers["equilib"] = equilib(sphere, rots).numpy()
    for name, convention in conventions().items():
        # py360convert's positions are OpenCV's, off by at most 1/64 of a pixel: see `smooth`
        apart = np.abs(convention.view(sphere).numpy() - peers[name]).max()
        assert apart < 1e-4, f"{name}: {apart}"
    assert (view() - by_remap(sphere, to_rays)).abs().max() < 1e-5
    ways = {
        "warpkit": view,
        "py360convert, a view that it has kept": lambda: by_py360convert(picture),
        "py360convert, another view": lambda: anew(picture),
        "equilib": lambda: equilib(sphere, rots),
        "float64 places and remap": lambda: by_remap(sphere, to_rays),
    }
    shape = "{} x {} of 3 x {} x {}".format(*SIZE, *SPHERE)
    yield Case(f"from_sphere, {shape}", ways, "1 of py360convert's, 3 of equilib's")

    leaves = [sphere.clone().requires_grad_(), turn.clone().requires_grad_()]
    grad = torch.rand(3, *SIZE, generator=torch.Generator().manual_seed(0))

    def with_gradients() -> tuple[Tensor, ...]:
        views = camera.from_sphere(leaves[0], SIZE, field_of_view=FIELD, rotation=leaves[1])
        return torch.autograd.grad(views, leaves, grad)

    ways = {"warpkit": with_gradients, "warpkit, forward alone": view}
    name = f"from_sphere, gradients to rotation and picture, {shape}"
    yield Case(name, ways, "1/3 at least")


if __name__ == "__main__":
    cv2.setNumThreads(1)
    packages = ("py360convert", "pyequilib", "opencv-python-headless")
    harness.main(__doc__, "spheres", cases, seconds=30.0, packages=packages)
