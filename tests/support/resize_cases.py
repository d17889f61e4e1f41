"""Random calls of cv2.resize and PIL.Image.resize, and how to repeat them with warpkit."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from warpkit.resizing import resize_by

FLAGS = {
    "nearest": 0,
    "bilinear": 1,
    "bicubic": 2,
    "area": 3,
    "lanczos4": 4,
    "bilinear_exact": 5,
    "nearest_exact": 6,
}
MODES = {"L": ("uint8", 1), "RGB": ("uint8", 3), "CMYK": ("uint8", 4), "F": ("float32", 1)}
MODES["I;16"] = ("uint16", 1)


AVX2_CASES = (
    ("uint8", "bicubic", (9, 11, 1), (61, 43), (29,)),
    ("uint8", "bicubic", (9, 11, 3), (61, 43), (12, 35, 62, 67, 128)),
    ("uint8", "bicubic", (9, 11, 4), (61, 43), (39, 79, 146)),
    ("uint8", "bicubic", (60, 80, 3), (23, 31), (60, 192, 278)),
    ("float32", "bilinear", (5, 4, 3), (44, 17), (0, 1, 2)),
    ("float32", "bilinear", (5, 4, 4), (44, 17), (0, 1, 2)),
    ("float32", "bilinear", (9, 3, 3), (21, 7), (0, 1)),
    ("float32", "bicubic", (12, 10, 1), (21, 14), (0, 1, 2)),
    ("float32", "bicubic", (12, 10, 3), (23, 14), (0, 1, 2)),
)
"""Types, filters, (H, W, C), (w, h) and seeds of which IPP gives other pixels with AVX2 than with
AVX-512."""


class Call(NamedTuple):
    """One call of cv2.resize."""

    image: np.ndarray
    """(H, W, C)"""
    interpolation: str
    dsize: tuple[int, int] | None
    """(w, h)"""
    fx: float = 0.0
    fy: float = 0.0


def avx2_calls() -> list[Call]:
    """One call for every seed of AVX2_CASES."""
    return [
        Call(noise_of(dtype, shape, seed), interpolation, dsize)
        for dtype, interpolation, shape, dsize, seeds in AVX2_CASES
        for seed in seeds
    ]


def noise_of(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Noise over all of 0 to 255."""
    random = np.random.default_rng(seed)
    if dtype == "uint8":
        return random.integers(0, 256, shape).astype(dtype)
    return (random.random(shape) * 255).astype(dtype)


def side(random: np.random.Generator, most: int) -> int:
    """A random side; 1 and small ones are more frequent."""
    kind = random.integers(0, 10)
    return 1 if kind == 0 else int(random.integers(2, 6 if kind < 3 else most + 1))


def image(random: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Noise; in one of four cases only extremes."""
    extreme = random.random() < 0.25
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        if extreme:
            return np.where(random.random(shape) < 0.5, limits.min, limits.max).astype(dtype)
        return random.integers(limits.min, limits.max + 1, shape).astype(dtype)
    return (random.normal(0, 1e4, shape) if extreme else random.random(shape) * 255).astype(dtype)


def random_call(
    random: np.random.Generator, interpolation: str, dtype: str, channels: int, most: int = 120
) -> Call:
    """Shrink by up to 40, enlarge, or both; by a size, by integer factors, or by fx, fy."""
    height, width, w, h = (side(random, most) for _ in range(4))
    kind = random.integers(0, 6)
    if kind == 0:  # by an integer, often 2
        k, j = (2, 2) if random.random() < 0.4 else random.integers(1, 41, 2)
        w, h = max(1, width // int(k)), max(1, height // int(j))
        width, height = w * int(k), h * int(j)
    shape = (height, width, channels)
    if kind > 1:
        return Call(image(random, dtype, shape), interpolation, (w, h))
    factors = [0.5, 0.25, 1 / 3, 0.2, 2.0, 3.0, 0.7, 1.3, random.random() * 3 + 0.05]
    fx, fy = (float(random.choice(factors)) for _ in range(2))
    return Call(image(random, dtype, shape), interpolation, None, fx, fy)


def fits(call: Call, result: np.ndarray) -> bool:
    """Whether the size equals the image's size times fx and fy."""
    if call.dsize is not None:
        return True
    allowed = 0.0 if call.image.dtype == np.float64 else 1e-10
    pairs = ((1, call.fx), (0, call.fy))
    sizes = [(result.shape[d] / call.image.shape[d], f) for d, f in pairs]
    return all(abs(side - f) / f <= allowed for side, f in sizes)


def call_cv2(cv2: Any, call: Call) -> np.ndarray | None:
    """OpenCV's result (h, w, C); None if it rejects the call."""
    options = {"fx": call.fx, "fy": call.fy, "interpolation": FLAGS[call.interpolation]}
    try:
        result = cv2.resize(call.image, call.dsize, **options)
    except cv2.error:
        return None
    return result.reshape(*result.shape[:2], call.image.shape[2])


def call_warpkit(
    call: Call, size: tuple[int, int], arithmetic: str, backend: str = "auto"
) -> np.ndarray:
    """warpkit's result (h, w, C), of `size`."""
    planes = torch.from_numpy(call.image).movedim(-1, 0)
    factors = None if call.dsize else (call.fy, call.fx)
    rest = call.interpolation, None, None, arithmetic, backend, factors
    return resize_by("resize", planes, size, *rest).movedim(0, -1).numpy()


def call_pillow(image: np.ndarray, mode: str, size: Any, name: str, box: Any) -> np.ndarray:
    """Pillow's result (h, w, C); size (h, w)."""
    from PIL import Image

    height, width, channels = image.shape
    picture = Image.frombytes(mode, (width, height), np.ascontiguousarray(image).tobytes())
    result = picture.resize(size[::-1], getattr(Image.Resampling, name.upper()), box=box)
    return np.frombuffer(result.tobytes(), image.dtype).reshape(*size, channels)


def differing(got: np.ndarray, wanted: np.ndarray) -> int:
    """The number of differing values."""
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    return int((~((got == wanted) | ((got != got) & (wanted != wanted)))).sum())
