"""Correlations and plane sweeps, compared with plain torch: python -m benchmarks.matching

Every case first proves that its ways agree. The opponents are what networks for flow and stereo
write, and faster code that nobody was seen to write: squares of the second picture's pixels as rows
that `F.embedding` gathers for 128 pixels at a time, rows multiplied by rows, and sweeps plane by
plane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.harness import Case, Way, main
from warpkit import camera, flow

Pair = Callable[[Tensor, Tensor], Tensor]
CLOSE = 1e-3
"""Relative to the largest: float32 places are off by 1e-5 pixels."""


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def sampled(picture: Tensor, at: Tensor) -> Tensor:
    """`F.grid_sample` of picture (N, C, H, W) at pixels (N, h, w, 2)."""
    sides = at.new_tensor([picture.shape[-1] - 1, picture.shape[-2] - 1])
    return F.grid_sample(picture, 2 * at / sides - 1, align_corners=True)


def pixels(size: tuple[int, int]) -> Tensor:
    """The (x, y) of every pixel (h, w, 2)."""
    y, x = torch.meshgrid(*(torch.arange(float(n)) for n in size), indexing="ij")
    return torch.stack((x, y), -1)


def square(radius: int) -> Tensor:
    """Offsets (dx, dy) by rows (n, 2)."""
    d = torch.arange(-radius, radius + 1.0)
    return torch.stack(torch.meshgrid(d, d, indexing="ij"), -1).reshape(-1, 2).flip(-1)


# -- correlation of first (N, C, h, w) and second (N, C, H, W)


def by_offsets(first: Tensor, second: Tensor, at: Tensor, radius: int = 4) -> Tensor:
    """A sample for each offset around places (N, h, w, 2)."""
    products = [(first * sampled(second, at + d)).mean(1) for d in square(radius)]
    return torch.stack(products, 1)


def by_rows(first: Tensor, second: Tensor, at: Tensor, radius: int = 4) -> Tensor:
    """Whole pixels around places (N, h, w, 2) as gathered rows, their products, and a blend."""
    n, c, h, w = first.shape
    height, width = second.shape[-2:]
    side, margin = 2 * radius + 2, 2 * radius + 3
    line = width + 2 * margin
    low = at.floor()
    rows = F.pad(second, (margin,) * 4).permute(0, 2, 3, 1).reshape(-1, c)
    own = first.permute(0, 2, 3, 1).reshape(-1, c, 1)
    x = (low[..., 0] - radius).clamp(-margin, width).long() + margin
    y = (low[..., 1] - radius).clamp(-margin, height).long() + margin
    items = torch.arange(n)[:, None] * line * (height + 2 * margin)
    start = ((y * line + x).reshape(n, -1) + items).reshape(-1)
    near = (torch.arange(side)[:, None] * line + torch.arange(side)).reshape(-1)
    parts = [
        (F.embedding((i[:, None] + near).clamp(max=len(rows) - 1), rows) @ f)[..., 0]
        for i, f in zip(start.split(128), own.split(128), strict=True)
    ]
    v = torch.cat(parts).view(n, h, w, side, side)
    fx, fy = (at - low)[..., 0, None, None], (at - low)[..., 1, None, None]
    v = v[..., :-1] + fx * (v[..., 1:] - v[..., :-1])
    v = v[..., :-1, :] + fy * (v[..., 1:, :] - v[..., :-1, :])
    return (v / c).flatten(-2).permute(0, 3, 1, 2)


def by_shifts(first: Tensor, second: Tensor, radius: int = 4) -> Tensor:
    """PWC-Net's loop over shifted pictures, without a flow."""
    h, w = first.shape[-2:]
    pad, count = F.pad(second, (radius,) * 4), 2 * radius + 1
    shifts = [pad[..., j : j + h, i : i + w] for j in range(count) for i in range(count)]
    return torch.stack([(first * s).mean(1) for s in shifts], 1)


def by_products(first: Tensor, second: Tensor, radius: int = 4) -> Tensor:
    """Rows times rows as products of matrices, of which some diagonals are taken."""
    n, c, h, w = first.shape
    one, pad, count = first.permute(0, 2, 3, 1), F.pad(second, (radius,) * 4), 2 * radius + 1
    parts, wide = [], w + 2 * radius
    for j in range(count):
        every = one @ pad[:, :, j : j + h].transpose(1, 2)
        parts.append(every.as_strided((n, h, w, count), (h * w * wide, w * wide, wide + 1, 1)))
    return torch.cat(parts, -1).permute(0, 3, 1, 2) / c


def by_volume(first: Tensor, second: Tensor, coords: list[Tensor], levels: int = 4) -> Tensor:
    """RAFT's volume of all pairs and its pyramid, looked up at each of coords (N, h, w, 2)."""
    n, c, h, w = first.shape
    volume = (first.flatten(2).mT @ second.flatten(2) / c**0.5).reshape(n * h * w, 1, h, w)
    pyramid = [volume]
    for _ in range(levels - 1):
        pyramid.append(F.avg_pool2d(pyramid[-1], 2))
    around = square(4).flip(-1)[None, None]
    parts = [
        sampled(v, at.reshape(-1, 1, 1, 2) / 2**level + around).view(n, h, w, -1)
        for at in coords
        for level, v in enumerate(pyramid)
    ]
    return torch.cat(parts, -1).permute(0, 3, 1, 2)


def by_pyramid(first: Tensor, second: Tensor, coords: list[Tensor], levels: int = 4) -> Tensor:
    """The same without a volume: the second picture's own pyramid."""
    pyramid, at = [second], pixels((first.shape[-2], first.shape[-1]))
    first = first * first.shape[1] ** 0.5  # it is smaller than the result
    for _ in range(levels - 1):
        pyramid.append(F.avg_pool2d(pyramid[-1], 2))
    parts = [
        flow.correlation(first, s, places / 2**level - at).unflatten(1, (9, 9)).transpose(1, 2)
        for places in coords
        for level, s in enumerate(pyramid)
    ]
    return torch.cat(parts, 1).flatten(1, 2)


# -- sweeps of view (N, C, h, w) and sources (N, V, C, h, w)


class Scene:
    """Cameras (N, 3, 3) in general position, and depths (N, D, 1 or h, 1 or w)."""

    def __init__(self, channels: int, views: int, planes: int, size: tuple[int, int], dense: bool):
        h, w = size
        self.view, self.sources = draw(1, channels, h, w), draw(1, views, channels, h, w, seed=1)
        matrix = [[0.9 * w, 0, w / 2 - 0.4], [0, 0.9 * w, h / 2 - 0.3], [0, 0, 1]]
        self.matrix = torch.tensor(matrix)[None]
        turn = camera.rotation(vector=0.03 * draw(1, views, 3, seed=2))
        self.poses = camera.pose(turn, 0.15 * draw(1, views, 3, seed=3))
        inverse = 1 / torch.linspace(2.0, 8.0, planes).view(1, -1, 1, 1)
        if dense:
            inverse = inverse + 0.05 * draw(1, 1, h, w, seed=4).sigmoid()
        self.depths = (1 / inverse).contiguous()

    def places(self, depths: Tensor) -> Tensor:
        """Pixels (N, V, D, h, w, 2) of depths (N, D, ...), in float32 as they are written."""
        size = (self.view.shape[-2], self.view.shape[-1])
        at = pixels(size).reshape(-1, 2)
        rays = torch.cat((at, torch.ones(len(at), 1)), -1).mT
        matrix = self.matrix[:, None]
        turned = matrix @ self.poses[..., :3, :3] @ torch.linalg.inv(matrix) @ rays
        shift = (matrix @ self.poses[..., :3, 3:])[:, :, None, :, :, None]
        ends = turned.unflatten(-1, size)[:, :, None] * depths[:, None, :, None] + shift
        return (ends[:, :, :, :2] / ends[:, :, :, 2:]).movedim(3, -1)

    def ours(self, view: Tensor, sources: Tensor, depths: Tensor, measure, groups) -> Tensor:
        """Tensors as the scene's."""
        return camera.plane_sweep(
            view, sources, depths, self.matrix, self.poses, measure=measure, groups=groups,
            border="constant",
        ).cost  # fmt: skip

    def warped(self, source: Tensor, at: Tensor) -> Tensor:
        """A source (N, C, h, w) at (N, D, h, w, 2): (N, C, D, h, w)."""
        n, d, h, w, _ = at.shape
        return sampled(source, at.reshape(n, d * h, w, 2)).unflatten(2, (d, h))

    def variance(self, view: Tensor, sources: Tensor, depths: Tensor) -> Tensor:
        """MVSNet's: tensors as the scene's."""
        at, count = self.places(depths), sources.shape[1] + 1
        total = view[:, :, None].expand(-1, -1, depths.shape[1], -1, -1)
        squares = total**2
        for v in range(count - 1):
            s = self.warped(sources[:, v], at[:, v])
            total, squares = total + s, squares + s**2
        return squares / count - (total / count) ** 2

    def products(self, groups: int, view: Tensor, sources: Tensor, depths: Tensor) -> Tensor:
        """Means of groups: tensors as the scene's."""
        at, own = self.places(depths), view[:, :, None]
        products = [
            (own * self.warped(s, p)).unflatten(1, (groups, -1)).mean(2)
            for s, p in zip(sources.unbind(1), at.unbind(1), strict=True)
        ]
        return torch.stack(products).mean(0)


def by_planes(
    sweep: Callable[..., Tensor], view: Tensor, sources: Tensor, depths: Tensor
) -> Tensor:
    """A sweep plane by plane, whose samples stay in a cache: tensors as a scene's."""
    return torch.cat(
        [sweep(view, sources, depths[:, d : d + 1]) for d in range(depths.shape[1])], 2
    )


# -- cases


def forward_and_gradients(
    name: str, ways: dict[str, Callable[..., Tensor]], inputs: list[Tensor], aims: tuple[str, str]
) -> Iterator[Case]:
    """Two cases of functions of tensors, the first of which is ours."""
    truth, *others = (way(*inputs) for way in ways.values())
    for other in others:
        assert (other - truth).abs().max() <= CLOSE * truth.abs().max(), name
    weights = draw(*truth.shape, seed=9)
    del other, others, truth

    def pushed(way: Callable[..., Tensor]) -> tuple[Tensor, ...]:
        leaves = [t.detach().requires_grad_() for t in inputs]
        return torch.autograd.grad(way(*leaves), leaves, weights)

    plain: dict[str, Way] = {key: partial(way, *inputs) for key, way in ways.items()}
    yield Case(name, plain, aims[0])
    both: dict[str, Way] = {key: partial(pushed, way) for key, way in ways.items()}
    yield Case(f"{name}, with gradients", both, aims[1])


def cases() -> Iterator[Case]:
    """Layers of RAFT, PWC-Net, MVSNet and CasMVSNet, forward and with gradients."""
    size = (96, 128)
    at = pixels(size) + 3 * draw(1, *size, 2, seed=2)
    by = at - pixels(size)
    around: dict[str, Callable[..., Tensor]] = {
        "warpkit": lambda a, b: flow.correlation(a, b, by),
        "rows gathered": lambda a, b: by_rows(a, b, at),
        "a grid_sample for each offset": lambda a, b: by_offsets(a, b, at),
    }
    pair = [draw(1, 128, *size), draw(1, 128, *size, seed=1)]
    yield from forward_and_gradients(
        "1 x 128 x 96 x 128, 81 offsets, a flow", around, pair, ("11 times", "12.5 times")
    )
    whole: dict[str, Callable[..., Tensor]] = {
        "warpkit": flow.correlation, "81 shifts": by_shifts, "products of rows": by_products,
    }  # fmt: skip
    pair = [draw(1, 64, 64, 80), draw(1, 64, 64, 80, seed=1)]
    yield from forward_and_gradients(
        "PWC-Net, 1 x 64 x 64 x 80", whole, pair, ("4.6 times", "4.2 times")
    )
    pair = [draw(1, 256, 46, 62), draw(1, 256, 46, 62, seed=1)]
    for count, aims in ((1, ("4.5 times", "")), (12, ("1.25 times", "1 time"))):
        coords = [pixels((46, 62)) + 2 * draw(1, 46, 62, 2, seed=n) for n in range(count)]
        lookups: dict[str, Callable[..., Tensor]] = {
            "warpkit": partial(by_pyramid, coords=coords),
            "a volume of all pairs": partial(by_volume, coords=coords),
        }
        name = f"RAFT, 1 x 256 x 46 x 62, 4 levels, {count} lookups"
        yield from forward_and_gradients(name, lookups, pair, aims)
    yield from sweeps()


def sweeps() -> Iterator[Case]:
    """MVSNet's variance, eight groups, and a cascade's depths for each pixel."""
    scene = Scene(32, 2, 48, (128, 160), dense=False)
    inputs = [scene.view, scene.sources]
    depths = scene.depths
    ways: dict[str, Callable[..., Tensor]] = {
        "warpkit": lambda r, s: scene.ours(r, s, depths, "variance", 32),
        "plane by plane": lambda r, s: by_planes(scene.variance, r, s, depths),
        "whole volumes": lambda r, s: scene.variance(r, s, depths),
    }
    yield from forward_and_gradients(
        "MVSNet, 32 channels, 2 views, 48 planes of 128 x 160", ways, inputs, ("7 times", "9 times")
    )
    few = depths[:, :32]
    grouped = partial(scene.products, 8)
    ways = {
        "warpkit": lambda r, s: scene.ours(r, s, few, "correlation", 8),
        "plane by plane": lambda r, s: by_planes(grouped, r, s, few),
        "whole volumes": lambda r, s: grouped(r, s, few),
    }
    yield from forward_and_gradients(
        "8 groups, 32 channels, 2 views, 32 planes of 128 x 160",
        ways,
        inputs,
        ("6.5 times", "8.9 times"),
    )
    cascade = Scene(16, 2, 8, (256, 320), dense=True)
    products = partial(cascade.products, 8)
    ways = {
        "warpkit": lambda r, s, d: cascade.ours(r, s, d, "correlation", 8),
        "plane by plane": partial(by_planes, products),
        "whole volumes": products,
    }
    inputs = [cascade.view, cascade.sources, cascade.depths]
    yield from forward_and_gradients(
        "cascade, 16 channels, 2 views, 8 depths a pixel of 256 x 320",
        ways,
        inputs,
        ("3.7 times", "3.7 times"),
    )


if __name__ == "__main__":
    main(__doc__, "matching", cases, seconds=20.0)
