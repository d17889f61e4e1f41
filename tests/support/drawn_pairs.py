"""Random data sets: images, a known program's results, and its description.

`draw_run` makes one from a seed and a kind: "lossless", "lossy" (decoded JPEG), "files" (JPEG
files) or "two" (two programs in one folder). `judged` evaluates an answer.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageDraw

from tests.support.programs import OPENCV, PILLOW
from warpkit.validation import Preprocessing

IMAGES = Path(__file__).parents[2] / "data" / "images"
KINDS = ("lossless", "lossy", "files", "two")
TORCH = ("bilinear", "bicubic")
LIBRARIES = ("pillow", "opencv", "torchvision", "torch")
SIDES = (16, 24, 32, 48, 64, 64, 96, 112, 128, 160, 224)
MEANS = (None, ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)), ((0.5,) * 3, (0.5,) * 3))
QUALITIES = (75, 80, 90, 95)

Array = np.ndarray[Any, Any]


@dataclass
class Program:
    """A resize by a library's own call, with its true attributes."""

    words: dict[str, Any]
    run: Callable[[Array], Array]


@dataclass
class Run:
    """A data set and its true attributes."""

    seed: int
    kind: str
    name: str
    images: list[Array]
    results: list[Any]
    program: Program
    groups: list[list[int]] | None = None
    notes: list[str] = field(default_factory=list)


def sources() -> list[Array]:
    """The photographs of this repository, and of scikit-learn if it is installed."""
    photographs = [
        np.asarray(Image.open(path).convert("RGB")) for path in sorted(IMAGES.glob("*.png"))
    ]
    try:
        from sklearn.datasets import load_sample_images
    except ImportError:
        return photographs
    return photographs + [np.asarray(image) for image in load_sample_images().images]


def drawn_picture(generator: np.random.Generator, height: int, width: int) -> Array:
    """Shapes on a gradient, with texture and noise."""
    y, x = np.mgrid[0:height, 0:width]
    colours = generator.uniform(0, 255, (3, 3))
    base = colours[0] * (x / width)[..., None] + colours[1] * (y / height)[..., None]
    image = Image.fromarray(np.clip(base, 0, 255).astype(np.uint8))
    pen = ImageDraw.Draw(image)
    for _ in range(int(generator.integers(6, 20))):
        x1, x2 = sorted(generator.integers(0, width, 2).tolist())
        y1, y2 = sorted(generator.integers(0, height, 2).tolist())
        colour = tuple(generator.integers(0, 256, 3).tolist())
        draw = generator.choice(["rectangle", "ellipse", "line"])
        getattr(pen, str(draw))((x1, y1, x2 + 1, y2 + 1), fill=colour)
    wave = 18 * np.sin(x / generator.uniform(1.5, 9)) * np.cos(y / generator.uniform(1.5, 9))
    noise = generator.normal(0, generator.uniform(2, 10), (height, width, 3))
    return np.clip(np.asarray(image) + wave[..., None] + noise, 0, 255).astype(np.uint8)


def pictures(generator: np.random.Generator, count: int, least: int) -> list[Array]:
    """Crops of photographs and drawn images, of different shapes."""
    photographs = sources()
    crops = []
    for _ in range(count):
        height, width = generator.integers(max(90, least), max(420, 2 * least), 2).tolist()
        if generator.random() < 0.3:
            crops.append(drawn_picture(generator, height, width))
            continue
        image = photographs[int(generator.integers(len(photographs)))]
        height, width = min(height, image.shape[0]), min(width, image.shape[1])
        top = int(generator.integers(image.shape[0] - height + 1))
        left = int(generator.integers(image.shape[1] - width + 1))
        crops.append(np.ascontiguousarray(image[top : top + height, left : left + width]))
    return crops


def _resize(library: str, name: str, antialias: bool) -> Callable[[Array, tuple[int, int]], Array]:
    """A library's own call: image, (h, w) -> (h, w, 3) uint8."""
    if library == "pillow":
        return lambda image, size: np.asarray(
            Image.fromarray(image).resize(size[::-1], PILLOW[name])
        )
    if library == "opencv":
        return lambda image, size: cv2.resize(image, size[::-1], interpolation=OPENCV[name])

    def by_torch(image: Array, size: tuple[int, int]) -> Array:
        batch = torch.from_numpy(image.copy()).movedim(-1, 0)[None].contiguous()
        batch = batch if library == "torchvision" else batch.float()
        result = F.interpolate(batch, size, mode=name, antialias=antialias)[0]
        return result.clamp(0, 255).round().to(torch.uint8).movedim(0, -1).contiguous().numpy()

    return by_torch


def draw_resize(
    generator: np.random.Generator, instead: str | None = None
) -> tuple[dict[str, Any], Any]:
    """A library's filter, named as in `Preprocessing`; `instead` is a library that replaces it."""
    library = str(generator.choice(LIBRARIES, p=[0.4, 0.36, 0.12, 0.12]))
    if library == "pillow":
        name = str(generator.choice(list(PILLOW)))
        antialias = name != "nearest"
    elif library == "opencv":
        name = str(generator.choice([name for name in OPENCV if name != "nearest_exact"]))
        antialias = False
    else:
        name, antialias = str(generator.choice(TORCH)), bool(generator.random() < 0.6)
    library = instead or library
    words = {"interpolation": name, "antialias": antialias, "arithmetic": library}
    return words, _resize(library, name, antialias)


def draw_program(generator: np.random.Generator, side: int, instead: str | None = None) -> Program:
    """A random rule of sizes and a random resize."""
    words, resize = draw_resize(generator, instead)
    rule = str(
        generator.choice(["fixed", "crop", "letterbox", "longest"], p=[0.64, 0.18, 0.1, 0.08])
    )
    level = int(generator.choice([0, 114, 128, 255]))
    if rule == "fixed":
        width = side if generator.random() < 0.7 else int(side * generator.uniform(0.7, 1.4))
        words |= {"rule": "fixed", "size": (side, width), "crop": None, "pad": None}
    elif rule == "crop":
        large = round(side * float(generator.choice([8 / 7, 1.0357, 1.25])))
        words |= {"rule": "shortest", "size": large, "crop": (side, side), "pad": None}
    elif rule == "letterbox":
        words |= {"rule": "longest", "size": side, "crop": None, "pad": ("center", level)}
    else:
        words |= {"rule": "longest", "size": side, "crop": None, "pad": None}

    def run(image: Array) -> Array:
        height, width = image.shape[:2]
        if words["rule"] == "fixed":
            return resize(image, words["size"])
        if words["rule"] == "shortest":
            short = min(height, width)
            size = tuple(int(words["size"] * v / short) for v in (height, width))
            top, left = ((v - side) // 2 for v in size)
            return resize(image, (size[0], size[1]))[top : top + side, left : left + side]
        factor = side / max(height, width)
        h, w = (max(1, round(v * factor)) for v in (height, width))
        resized = resize(image, (h, w))
        if words["pad"] is None:
            return resized
        whole = np.full((side, side, 3), level, np.uint8)
        top, left = (side - h) // 2, (side - w) // 2
        whole[top : top + h, left : left + w] = resized
        return whole

    return Program(words, run)


def through_jpeg(image: Array, quality: int, sampling: int) -> bytes:
    memory = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(image)).save(
        memory, "JPEG", quality=quality, subsampling=sampling
    )
    return memory.getvalue()


def draw_run(seed: int, kind: str, instead: str | None = None) -> Run:
    """One data set; `instead` is a library whose resize replaces the drawn one."""
    generator = np.random.default_rng(seed)
    side = int(generator.choice(SIDES))
    count = int(generator.choice([8, 16] if kind == "two" else [4, 8, 8, 16]))
    images = pictures(generator, count, 0)
    program = draw_program(generator, side, instead)
    results: list[Any] = [program.run(image) for image in images]
    run = Run(seed, kind, _named(program.words), images, results, program)
    if kind == "lossless":
        return _finished(run, generator)
    quality, sampling = int(generator.choice(QUALITIES)), int(generator.choice([0, 2]))
    if kind in ("lossy", "files"):
        run.name += f", JPEG {quality}, {'4:4:4' if sampling == 0 else '4:2:0'}"
        files = [Image.open(io.BytesIO(through_jpeg(r, quality, sampling))) for r in results]
        run.results = files if kind == "files" else [np.asarray(file) for file in files]
        return run
    return _mixed(run, generator)


def _finished(run: Run, generator: np.random.Generator) -> Run:
    """Keep the levels or normalise them as floats, sometimes with reversed channels."""
    means = MEANS[int(generator.integers(len(MEANS)))]
    reverse = generator.random() < 0.3
    run.program.words["channels"] = "reversed" if reverse else "kept"
    if reverse:
        run.results = [result[..., ::-1] for result in run.results]
    if means is not None:
        mean, deviation = (np.float32(v) for v in means)
        run.results = [
            ((r / np.float32(255) - mean) / deviation).transpose(2, 0, 1) for r in run.results
        ]
        run.name += ", normalised"
    run.name += ", BGR" if reverse else ""
    return run


def _mixed(run: Run, generator: np.random.Generator) -> Run:
    """Replace some of the results by those of a second program with another resize."""
    first = run.program.words
    while True:
        words, resize = draw_resize(generator)
        if any(words[name] != first[name] for name in words):
            break
    side = run.results[0].shape[:2]
    if first["rule"] != "fixed":
        fixed = Program(
            first | {"rule": "fixed", "size": (64, 64), "crop": None, "pad": None}, run.program.run
        )
        call = _resize(first["arithmetic"], first["interpolation"], first["antialias"])
        side, run.program = (64, 64), fixed
        run.results = [call(image, (64, 64)) for image in run.images]
    count = len(run.images)
    second = sorted(generator.choice(count, int(generator.integers(2, count // 2)), False).tolist())
    for k in second:
        run.results[k] = resize(run.images[k], side)
    run.groups = [[k for k in range(count) if k not in second], second]
    run.name = f"{_named(run.program.words)} and {words['arithmetic']} {words['interpolation']}"
    return run


def _named(words: dict[str, Any]) -> str:
    antialias = " antialiased" if words["antialias"] else ""
    return (
        f"{words['arithmetic']} {words['interpolation']}{antialias}, {words['rule']} "
        f"{words['size']}" + (", crop" if words["crop"] else "") + (", pad" if words["pad"] else "")
    )


def is_said(name: str, wanted: Any, answer: Any, room: float = 0) -> bool:
    """Whether an attribute is right; OpenCV's versions and IPP count as one.

    room: levels by which padding may be off."""
    if name == "arithmetic" and isinstance(answer, str) and wanted == "opencv":
        return answer.startswith("opencv")
    if (
        name == "pad" and wanted is not None and isinstance(answer, tuple)
    ):  # codecs change its level
        return bool(
            answer[0] == wanted[0] and np.abs(np.subtract(answer[1], wanted[1])).max() <= room
        )
    return bool(answer == wanted)


def judged(run: Run, answer: Preprocessing) -> tuple[str, str]:
    """ "whole", "alike", "first", "open", "not" or "wrong", and the wrong attributes."""
    words = run.program.words
    room = 2 if run.kind == "lossy" else 0
    wrong = [
        f"{name} {getattr(answer, name)!r}, not {words[name]!r}"
        for name in words
        if not _unsaid(answer, name) and not is_said(name, words[name], getattr(answer, name), room)
    ]
    if wrong:
        return "wrong", "; ".join(wrong)
    missing = [name for name in words if not is_said(name, words[name], getattr(answer, name))]
    if run.kind == "two":
        parted = answer.groups == run.groups
        return ("parted" if parted else "not"), "" if parted else f"{answer.groups} {run.groups}"
    if run.kind == "lossy":
        if not answer.candidates:
            return "not", "no candidates"
        best = answer.candidates[0][0]
        same = all(getattr(best, n) == words[n] for n in ("interpolation", "antialias"))
        return ("first" if same else "not"), "" if same else f"first: {best}"
    if not missing:
        return "whole", ""
    if missing == ["arithmetic"] and (libraries := alike(run, answer)):
        return "alike", "the same results by " + " and ".join(libraries)
    return "open", "open: " + ", ".join(missing)


def alike(run: Run, answer: Preprocessing) -> list[str]:
    """The remaining libraries, if each of them, when called, gives exactly these results."""
    names = {str(program.arithmetic) for program, _, _ in answer.candidates}
    libraries = sorted({"opencv" if n.startswith("opencv") else n for n in names})
    if not {run.program.words["arithmetic"]} < set(libraries) <= {*LIBRARIES}:
        return []
    for library in libraries:
        again = draw_run(run.seed, run.kind, library).results
        if not all(map(np.array_equal, map(np.asarray, again), map(np.asarray, run.results))):
            return []
    return libraries


def _unsaid(answer: Preprocessing, name: str) -> bool:
    """Whether an attribute is left open: it is None, unless None means no crop or padding."""
    if name in ("crop", "pad"):
        return answer.rule is None or (getattr(answer, name) is None and not answer.known)
    return getattr(answer, name) is None


def kinds_of(seeds: Sequence[int]) -> list[str]:
    """The kinds of runs: of ten, four are lossless, and two of each other kind."""
    order = ("lossless", "lossy", "files", "two", "lossless", "lossless", "lossy", "files", "two")
    return [(*order, "lossless")[seed % 10] for seed in seeds]
