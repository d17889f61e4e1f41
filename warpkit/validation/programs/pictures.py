"""Test images for programs: (H, W, 3) uint8, always the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Picture = NDArray[np.uint8]


def flat(height: int, width: int, colour: Sequence[int]) -> Picture:
    """One colour, (R, G, B) in 0..255."""
    return np.broadcast_to(np.asarray(colour, np.uint8), (height, width, 3)).copy()


def noise(height: int, width: int, seed: int) -> Picture:
    """White noise, for which every filter and every rounding gives different numbers."""
    generator = np.random.default_rng(seed)
    return generator.integers(0, 256, (height, width, 3), dtype=np.uint8)


def smooth(height: int, width: int, seed: int) -> Picture:
    """Waves with a little noise: similar programs give similar results."""
    generator = np.random.default_rng(seed)
    y, x = np.arange(height)[:, None], np.arange(width)[None, :]
    picture = np.empty((height, width, 3), np.uint8)
    rough = generator.integers(0, 16, (height, width, 3), dtype=np.uint8)
    for channel in range(3):
        along_x = np.sin(x / generator.uniform(3, 40) + generator.uniform(0, 6))
        along_y = np.cos(y / generator.uniform(3, 40))
        wave = 120 + 119.5 * along_x.astype(np.float32) * along_y.astype(np.float32)
        picture[..., channel] = wave.astype(np.uint8) + rough[..., channel]
    return picture


def dark(height: int, width: int, seed: int) -> Picture:
    """Noise with levels 0 to 28."""
    return noise(height, width, seed) // 9


def pale(height: int, width: int, seed: int) -> Picture:
    """Noise with levels 227 to 255."""
    return 255 - dark(height, width, seed)


def gray(height: int, width: int, seed: int) -> Picture:
    """Noise with three equal channels."""
    return np.repeat(noise(height, width, seed)[..., :1], 3, axis=2)


def black_and_white(height: int, width: int, seed: int) -> Picture:
    """Noise with levels 0 and 255, on which every bicubic filter overshoots."""
    return (noise(height, width, seed) > 127).astype(np.uint8) * np.uint8(255)


KINDS: tuple[Callable[[int, int, int], Picture], ...] = (noise, smooth)


def ramp(shape: tuple[int, int], axis: int, low: float, high: float) -> Picture:
    """Black up to `low` along an axis, white from `high` on, linear between them."""
    places = np.arange(shape[axis])
    line = np.clip((places - low) / max(high - low, 1) * 255, 0, 255).round().astype(np.uint8)
    line = line[:, None] if axis == 0 else line[None, :]
    return np.broadcast_to(line[..., None], (*shape, 3)).copy()


def probes(side: int) -> list[tuple[int, int]]:
    """Shapes of pictures that may distinguish rules."""
    generator = np.random.default_rng(5)
    low, high = max(24, int(side * 0.6)), int(side * 2.2) + 30
    shapes = [(int(a), int(b)) for a, b in generator.integers(low, high, (400, 2))]
    for even in (2 * (side // 2), int(side * 1.5), 2 * side):
        shapes += [(even, int(other)) for other in generator.integers(low, high, 60)]
    return shapes
