"""Random preprocessing programs with descriptions of their code, for `identify`.

`draw` makes one from a seed: a library, a rule of sizes, crop, padding, filter, order of channels,
range, mean and deviation, rounding, type and layout. `mistakes` compares an answer with it. `traps`
are programs that `identify` must not name.
"""

from __future__ import annotations

import importlib.util
import io
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageFilter, ImageOps
from torchvision.transforms import InterpolationMode, v2

from tests.support import hostile_programs

PILLOW = {
    "nearest": Image.Resampling.NEAREST,
    "box": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "hamming": Image.Resampling.HAMMING,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
OPENCV = {
    "nearest": cv2.INTER_NEAREST,
    "nearest_exact": cv2.INTER_NEAREST_EXACT,
    "bilinear": cv2.INTER_LINEAR,
    "bilinear_exact": cv2.INTER_LINEAR_EXACT,
    "bicubic": cv2.INTER_CUBIC,
    "area": cv2.INTER_AREA,
    "lanczos4": cv2.INTER_LANCZOS4,
}
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
MEANS = (None, None, IMAGENET, CLIP, ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)), ((0.4,) * 3, (0.3,) * 3))

LIBRARIES = ("pillow", "opencv", "torchvision", "torch", "albumentations", "transformers")


def installed() -> tuple[str, ...]:
    """The installed libraries."""
    return tuple(
        name
        for name in LIBRARIES
        if name in ("pillow", "opencv", "torch") or importlib.util.find_spec(name)
    )


@dataclass
class Drawn:
    """A program, the form in which it takes images, and its true attributes."""

    function: Callable[[Any], Any]
    takes: str
    library: str
    expected: dict[str, Any] = field(default_factory=dict)

    def numbers(self, picture: np.ndarray) -> np.ndarray:
        """Its result for an image (H, W, 3) uint8, as (C, h, w)."""
        argument: Any = picture.copy()
        if self.takes == "pil":
            argument = Image.fromarray(argument)
        elif self.takes == "tensor":
            argument = torch.from_numpy(argument).movedim(-1, 0).contiguous()
        result = self.function(argument)
        if hasattr(result, "keys"):
            result = result["pixel_values"]
        result = result[0] if isinstance(result, list) else result
        result = np.asarray(result.float() if isinstance(result, torch.Tensor) else result).astype(
            float
        )
        result = result[0] if self.expected["batched"] and result.ndim == 4 else result
        if self.expected["layout"] == "HWC":
            result = np.moveaxis(result, -1, 0)
        return result if result.ndim == 3 else result[None]


def draw(seed: int, libraries: tuple[str, ...] = LIBRARIES) -> Drawn:
    """A random program of one of the libraries."""
    random = np.random.default_rng(seed)
    library = str(random.choice(libraries))
    return DRAWERS[library](random)


def _pick(random: np.random.Generator, *choices: Any) -> Any:
    return choices[int(random.integers(len(choices)))]


def _side(random: np.random.Generator) -> int:
    return int(_pick(random, 32, 48, 64, 96, 112, 128, 160, 224, int(random.integers(28, 200))))


def _rule(random: np.random.Generator, *, boxes: bool = False) -> dict[str, Any]:
    """A random rule of sizes with its crop, and the step before it."""
    n = _side(random)
    wide = (n, _side(random))
    names = [
        "fixed",
        "fixed",
        "shortest",
        "shortest",
        "longest",
        "keep",
        "factor",
        "square",
        "limit",
    ]
    names += ["part", "padded", "small"] + (["box"] if boxes else [])
    kind = str(random.choice(names))
    rule: dict[str, Any] = {"rule": kind, "size": n}
    if kind == "fixed":
        rule["size"] = wide if random.random() < 0.6 else (n, n)
    elif kind == "shortest" and random.random() < 0.7:
        crop = max(8, int(n * _pick(random, 0.875, 1.0, 0.9)))
        rule["crop"] = (crop, crop)
    elif kind == "keep":
        rule["size"] = None
        if random.random() < 0.7:
            rule["crop"] = wide
    elif kind == "factor":
        rule["size"] = _pick(random, 0.5, 0.25, 0.75)
    elif kind in ("square", "padded", "box", "part"):
        before = {"square": ("crop", "square"), "padded": ("pad", int(random.integers(0, 256)))}
        before |= {"box": ("box", "square"), "part": ("crop", n / (n + 32))}
        rule |= {"rule": "fixed", "size": (n, n), "before": before[kind]}
    elif kind == "limit":
        rule |= {"rule": "shortest", "limit": int(n * _pick(random, 1.4, 1.666, 2.0))}
    elif kind == "small":
        rule |= {"rule": _pick(random, "shortest", "longest"), "enlarge": False}
    if rule["rule"] == "longest" and random.random() < 0.7:
        rule["pad"] = (_pick(random, "center", "end"), _pick(random, 0, 114, 128, (10, 20, 30)))
        if random.random() < 0.3:
            rule["canvas"] = 32
        else:
            rule["canvas"] = (n, n)
    return rule


def sides(rule: dict[str, Any], near: Callable[[float], int], h: int, w: int) -> tuple[int, int]:
    """The size after the resize, by the rounding of the other side."""
    kind, size = rule["rule"], rule["size"]
    if kind == "keep":
        return h, w
    if kind == "fixed":
        return size
    if kind == "factor":
        return near(h * size), near(w * size)
    pick = min(h, w) if kind == "shortest" else max(h, w)
    if not rule.get("enlarge", True) and pick <= size:
        return h, w
    new = tuple(size if v == pick else max(1, near(size * v / pick)) for v in (h, w))
    limit = rule.get("limit")
    if limit is not None and max(new) > limit:
        short = int(limit * min(new) / max(new))
        new = (limit, short) if h > w else (short, limit)
    return new[0], new[1]


def _offsets(random: np.random.Generator) -> Callable[[int], int]:
    return _pick(random, lambda d: d // 2, lambda d: round(d / 2), lambda d: -(-d // 2))


def _rounding(random: np.random.Generator) -> Callable[[float], int]:
    return _pick(random, math.floor, round, lambda v: int(v + 0.5), math.ceil)


def _made(
    random: np.random.Generator, resize: Callable[[np.ndarray, int, int, Any], np.ndarray]
) -> tuple[Callable[[np.ndarray], np.ndarray], dict[str, Any]]:
    """Apply a rule with a resize of arrays (H, W, 3); gives levels (h, w, 3), uint8 or floats."""
    rule = _rule(random, boxes=getattr(resize, "boxes", False))
    near, offset, place = _rounding(random), _offsets(random), _offsets(random)

    def run(x: np.ndarray) -> np.ndarray:
        h, w = x.shape[:2]
        before, box = rule.get("before"), None
        if before is not None and before[0] == "pad":
            side = max(h, w)
            square = np.full((side, side, 3), before[1], np.uint8)
            top, left = (side - h) // 2, (side - w) // 2
            square[top : top + h, left : left + w] = x
            x = square
        elif before is not None:
            part = 1.0 if before[1] == "square" else before[1]
            side = int(min(h, w) * part)
            top, left = offset(h - side), offset(w - side)
            if before[0] == "box":
                top, left = (h - side) * 0.5, (w - side) * 0.5
                box = (left, top, left + side, top + side)
            else:
                x = x[top : top + side, left : left + side]
        new = sides(rule, near, x.shape[0], x.shape[1])
        y = x if new == x.shape[:2] and box is None else resize(np.ascontiguousarray(x), *new, box)
        if "crop" in rule:
            y = crop_or_pad(y, rule["crop"], offset)
        if "pad" in rule:
            y = _padded(y, rule, place)
        return y

    return run, rule


def crop_or_pad(y: np.ndarray, size: tuple[int, int], offset: Callable[[int], int]) -> np.ndarray:
    """Crop the centre; a larger crop is padded with zeros, as in torchvision."""
    h, w = y.shape[:2]
    out = np.zeros((*size, 3), y.dtype)
    spans = []
    for n, o in ((h, size[0]), (w, size[1])):
        if n >= o:
            at = offset(n - o)
            spans.append((slice(0, o), slice(at, at + o)))
        else:
            at = (o - n) // 2
            spans.append((slice(at, at + n), slice(0, n)))
    out[spans[0][0], spans[1][0]] = y[spans[0][1], spans[1][1]]
    return out


def _padded(y: np.ndarray, rule: dict[str, Any], place: Callable[[int], int]) -> np.ndarray:
    h, w = y.shape[:2]
    canvas = rule["canvas"]
    size = (
        canvas
        if isinstance(canvas, tuple)
        else (-(-h // canvas) * canvas, -(-w // canvas) * canvas)
    )
    where, value = rule["pad"]
    out = np.empty((*size, 3), y.dtype)
    out[...] = value
    top, left = (0, 0) if where == "end" else (place(size[0] - h), place(size[1] - w))
    out[top : top + h, left : left + w] = y
    return out


def _numbers(
    random: np.random.Generator, run: Callable[[np.ndarray], np.ndarray], *, rgb: bool = True
) -> tuple[Callable[[np.ndarray], Any], dict[str, Any]]:
    """Apply order, range, mean and deviation, type and layout to levels (h, w, 3)."""
    order = _pick(random, "kept", "kept", "reversed") if rgb else "kept"
    kind = _pick(random, "levels", "unit", "unit", "normalised", "signed")
    mean_std = _pick(random, IMAGENET, CLIP, ((0.5,) * 3, (0.5,) * 3))
    layout = _pick(random, "CHW", "CHW", "HWC")
    batched = bool(random.random() < 0.3)
    dtype = _pick(random, "float32", "float32", "float32", "float64", "float16")
    integral = kind == "levels" and random.random() < 0.6

    def finished(x: np.ndarray) -> Any:
        y = run(x)
        if order == "reversed":
            y = y[..., ::-1]
        if not (integral and y.dtype == np.uint8):
            y = y.astype(np.float32 if dtype != "float64" else np.float64)
            if kind == "unit":
                y = y / 255
            elif kind == "signed":
                y = y / 127.5 - 1
            elif kind == "normalised":
                mean, std = (np.asarray(v, y.dtype) for v in mean_std)
                y = (y / 255 - mean) / std
            y = y.astype(dtype)
        y = y.transpose(2, 0, 1) if layout == "CHW" else y
        return np.ascontiguousarray(y[None] if batched else y)

    one, zero = np.ones(3), np.zeros(3)
    gain, offset = {
        "levels": (one, zero),
        "unit": (one / 255, zero),
        "signed": (one / 127.5, -one),
        "normalised": (1 / 255 / np.array(mean_std[1]), -np.array(mean_std[0]) / mean_std[1]),
    }[kind]
    expected = {"channels": order, "layout": layout, "batched": batched}
    return finished, {**expected, "gain": gain, "offset": offset}


def _pillow(random: np.random.Generator) -> Drawn:
    name = str(random.choice(list(PILLOW)))

    def resize(x: np.ndarray, h: int, w: int, box: Any) -> np.ndarray:
        return np.asarray(Image.fromarray(x).resize((w, h), PILLOW[name], box=box))

    resize.boxes = name != "nearest"  # type: ignore[attr-defined]
    run, rule = _made(random, resize)
    if random.random() < 0.15 and rule["rule"] != "keep":
        run, rule = _of_image_ops(random, name)
    function, numbers = _numbers(random, run)
    expected = {**_words(rule, name, name != "nearest", "pillow"), **numbers}
    return Drawn(lambda image: function(np.asarray(image)), "pil", "pillow", expected)


def _of_image_ops(random: np.random.Generator, name: str) -> tuple[Any, dict[str, Any]]:
    """ImageOps.pad and contain of Pillow, into rectangles."""
    h, w = _side(random), _side(random)
    if random.random() < 0.5:
        run = lambda x: np.asarray(ImageOps.contain(Image.fromarray(x), (w, h), PILLOW[name]))  # noqa: E731
        return run, {"rule": "longest", "size": h if h == w else (h, w)}
    colour = (9, 200, 70)
    run = lambda x: np.asarray(  # noqa: E731
        ImageOps.pad(Image.fromarray(x), (w, h), PILLOW[name], color=colour)
    )
    size = h if h == w else (h, w)
    return run, {"rule": "longest", "size": size, "pad": ("center", colour), "canvas": (h, w)}


def _opencv(random: np.random.Generator) -> Drawn:
    name = str(random.choice(list(OPENCV)))

    def resize(x: np.ndarray, h: int, w: int, _box: Any) -> np.ndarray:
        return cv2.resize(x, (w, h), interpolation=OPENCV[name])

    run, rule = _made(random, resize)
    if rule["rule"] == "factor":
        f = rule["size"]
        run = lambda x: cv2.resize(x, None, fx=f, fy=f, interpolation=OPENCV[name])  # noqa: E731
    function, numbers = _numbers(random, run)
    gray = random.random() < 0.12
    expected = {**_words(rule, name, False, "opencv"), **numbers}
    if gray and "before" not in rule and "pad" not in rule:
        bgr = bool(random.random() < 0.5)
        code = cv2.COLOR_BGR2GRAY if bgr else cv2.COLOR_RGB2GRAY
        plain = run
        expected |= {"channels": "gray reversed" if bgr else "gray", "layout": "HW"}
        expected |= {"batched": False, "gain": np.ones(1) / 255, "offset": np.zeros(1)}
        function = lambda x: cv2.cvtColor(plain(x), code).astype(np.float32) / 255  # noqa: E731
    return Drawn(function, "array", "opencv", expected)


def _torch(random: np.random.Generator) -> Drawn:
    name = _pick(random, "bilinear", "bicubic", "area", "nearest", "nearest-exact")
    antialias = name in ("bilinear", "bicubic") and bool(random.random() < 0.5)
    corners = name in ("bilinear", "bicubic") and not antialias and bool(random.random() < 0.3)
    ending = _pick(random, "floats", "rounded", "cut")
    options = {"antialias": antialias, "align_corners": corners} if "bi" in name else {}

    def resize(x: np.ndarray, h: int, w: int, _box: Any) -> np.ndarray:
        floats = torch.from_numpy(x).movedim(-1, 0)[None].float()
        y = F.interpolate(floats, (h, w), mode=name, **options)
        if ending != "floats":
            y = y.clamp(0, 255)
            y = (y.round() if ending == "rounded" else y).to(torch.uint8)
        return y[0].movedim(0, -1).numpy()

    run, rule = _made(random, resize)
    function, numbers = _numbers(random, run)
    expected = {**_words(rule, name.replace("-", "_"), antialias, "torch"), **numbers}
    expected["aligned"] = "corners" if corners else "centers"
    expected["rounded"] = {"floats": False, "rounded": True, "cut": "down"}[ending]
    if rule["rule"] == "keep" or "nearest" in name:
        expected["rounded"] = True

    def call(x: Any) -> Any:
        return torch.from_numpy(function(x.movedim(0, -1).numpy().copy()))

    return Drawn(call, "tensor", "torch", expected)


def _torchvision(random: np.random.Generator) -> Drawn:
    name = _pick(random, "bilinear", "bilinear", "bicubic", "nearest", "nearest-exact")
    pil = bool(random.random() < 0.5)
    antialias = pil or bool(random.random() < 0.7)
    mode = InterpolationMode(name)
    n, kind = _side(random), _pick(random, "fixed", "shortest", "limit", "keep")
    steps: list[Any] = []
    rule: dict[str, Any] = {"rule": "fixed" if kind == "fixed" else "shortest", "size": n}
    if kind == "fixed":
        rule["size"] = (n, _side(random))
        steps.append(v2.Resize(rule["size"], mode, antialias=antialias))
    elif kind == "limit":
        rule["limit"] = int(n * 1.666)
        steps.append(v2.Resize(n, mode, max_size=rule["limit"], antialias=antialias))
    elif kind == "shortest":
        steps.append(v2.Resize(n, mode, antialias=antialias))
    else:
        rule |= {"rule": "keep", "size": None}
    if kind in ("shortest", "keep"):
        rule["crop"] = (max(8, int(n * 0.875)),) * 2
        steps.append(v2.CenterCrop(rule["crop"]))
    steps += [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    mean_std = _pick(random, *MEANS)
    if mean_std is not None:
        steps.append(v2.Normalize(*mean_std))
    chain = v2.Compose(steps)
    gain, offset = np.ones(3) / 255, np.zeros(3)
    if mean_std is not None:
        gain, offset = gain / mean_std[1], -np.array(mean_std[0]) / mean_std[1]
    moves = "nearest" in name
    expected = _words(
        rule, name.replace("-", "_"), antialias and not moves, "pillow" if pil else "torchvision"
    )
    if moves:
        expected["antialias"] = False
    expected |= {
        "channels": "kept",
        "layout": "CHW",
        "batched": False,
        "gain": gain,
        "offset": offset,
    }
    return Drawn(chain, "pil" if pil else "tensor", "torchvision", expected)


def _albumentations(random: np.random.Generator) -> Drawn:
    import albumentations as A

    name = _pick(random, "bilinear", "bicubic", "area", "nearest", "lanczos4")
    code = OPENCV[name]
    n = _side(random)
    kind = _pick(random, "fixed", "shortest", "longest", "crop")
    rule: dict[str, Any] = {"rule": kind, "size": n}
    if kind == "fixed":
        rule["size"] = (n, _side(random))
        steps: list[Any] = [A.Resize(*rule["size"], interpolation=code)]
    elif kind == "longest":
        steps = [A.LongestMaxSize(n, interpolation=code)]
        if random.random() < 0.6:
            rule |= {"pad": ("center", 0), "canvas": (n, n)}
            steps.append(A.PadIfNeeded(n, n, border_mode=cv2.BORDER_CONSTANT, fill=0))
    else:
        rule["rule"] = "shortest"
        steps = [A.SmallestMaxSize(n, interpolation=code)]
        if kind == "crop":
            rule["crop"] = (int(n * 0.875),) * 2
            steps.append(A.CenterCrop(*rule["crop"]))
    mean, std = _pick(random, IMAGENET, CLIP)
    steps.append(A.Normalize(mean, std))
    chain = A.Compose(steps)
    gain, offset = 1 / 255 / np.array(std), -np.array(mean) / std
    expected = {**_words(rule, name, False, "opencv"), "channels": "kept", "layout": "HWC"}
    expected |= {"batched": False, "gain": gain, "offset": offset}
    return Drawn(lambda x: chain(image=x)["image"], "array", "albumentations", expected)


def _transformers(random: np.random.Generator) -> Drawn:
    import transformers

    n = _side(random)
    mean, std = _pick(random, IMAGENET, CLIP)
    name = _pick(random, "bilinear", "bicubic", "lanczos")
    code = {"bilinear": 2, "bicubic": 3, "lanczos": 1}[name]
    common = {"image_mean": list(mean), "image_std": list(std), "resample": code}
    backend = _pick(random, "torchvision", "pil")
    suffix = "" if backend == "torchvision" else "Pil"
    if random.random() < 0.5:
        kind = getattr(transformers, f"CLIPImageProcessor{suffix}")
        size = {"shortest_edge": n}
        crop = int(n * _pick(random, 0.875, 1.0))
        processor = kind(size=size, crop_size={"height": crop, "width": crop}, **common)
        rule: dict[str, Any] = {"rule": "shortest", "size": n, "crop": (crop, crop)}
    else:
        kind = getattr(transformers, f"ViTImageProcessor{suffix}")
        wide = _side(random)
        processor = kind(size={"height": n, "width": wide}, **common)
        rule = {"rule": "fixed", "size": (n, wide)}
    gain, offset = 1 / 255 / np.array(std), -np.array(mean) / std
    library = "pillow" if suffix else "torchvision"
    expected = {**_words(rule, name, True, library), "channels": "kept", "layout": "CHW"}
    expected |= {"batched": True, "gain": gain, "offset": offset}
    return Drawn(lambda x: processor(x, return_tensors="pt"), "pil", "transformers", expected)


DRAWERS = {
    "pillow": _pillow,
    "opencv": _opencv,
    "torchvision": _torchvision,
    "torch": _torch,
    "albumentations": _albumentations,
    "transformers": _transformers,
}


def _words(rule: dict[str, Any], name: str, antialias: bool, library: str) -> dict[str, Any]:
    """The attributes of a rule and a filter."""
    words = {key: rule.get(key) for key in ("rule", "size", "before", "limit", "pad")}
    words["enlarge"] = rule.get("enlarge", True)
    crop = rule.get("crop")
    cut = crop is not None and (rule["size"] is None or min(crop) <= rule["size"])
    words["crop"] = crop if cut else None
    if rule["rule"] == "keep":
        return words | {"interpolation": None}
    words |= {"interpolation": name, "antialias": antialias and name != "area"}
    return words | {"arithmetic": library, "aligned": "centers", "rounded": True}


ATTRIBUTES = ("rule", "size", "limit", "before", "enlarge", "crop", "channels", "layout", "batched")
FAMILIES = {
    "opencv4": "opencv",
    "opencv5": "opencv",
    "opencv4_ipp": "opencv",
    "opencv5_ipp": "opencv",
}


def mistakes(program: Drawn, answer: Any) -> list[str]:
    """The wrong attributes in an answer about a program; open attributes are not wrong."""
    wrong = []
    expected = program.expected
    for name in ATTRIBUTES:
        got, wanted = getattr(answer, name), expected.get(name)
        if name == "before" and wanted and wanted[0] == "crop" and wanted[1] != "square" and got:
            wanted = (wanted[0], got[1] if abs(got[1] - wanted[1]) < 0.005 else wanted[1])
        if got != wanted:
            wrong.append(f"{name}: {got}, not {wanted}")
    pad = expected.get("pad")
    if pad is not None and isinstance(pad[1], tuple) and expected["channels"] == "reversed":
        pad = (pad[0], pad[1][::-1])  # in the order of the result
    if pad is not None and answer.pad != pad:
        wrong.append(f"pad: {answer.pad}, not {pad}")
    close = 2e-3 if answer.dtype == "float16" else 1e-5
    for name in ("gain", "offset"):
        got, wanted = np.asarray(getattr(answer, name), float), expected[name]
        if got.shape != np.shape(wanted) or np.abs(got - wanted).max() > close * max(
            1e-2, np.abs(wanted).max()
        ):
            wrong.append(f"{name}: {got}, not {wanted}")
    if expected["interpolation"] is None:
        return wrong + ([f"interpolation: {answer.interpolation}"] if answer.interpolation else [])
    if "nearest" in expected["interpolation"]:  # Pillow's nearest equals nearest_exact elsewhere
        return wrong + ([] if "nearest" in str(answer.interpolation) else ["not nearest"])
    if answer.rule == "factor" and answer.size == 0.5 and answer.arithmetic.startswith("opencv"):
        # at exactly half the size, all are means of four pixels
        alike = ("bilinear", "bilinear_exact", "area")
        expected = (
            {**expected, "interpolation": answer.interpolation}
            if ({answer.interpolation, expected["interpolation"]} <= set(alike))
            else expected
        )
    names = ("interpolation", "antialias", "aligned", "rounded")
    unlike = [name for name in names if getattr(answer, name) != expected[name]]
    wrong += [f"{name}: {getattr(answer, name)}, not {expected[name]}" for name in unlike]
    family = FAMILIES.get(str(answer.arithmetic), str(answer.arithmetic))
    if family != expected["arithmetic"]:
        wrong.append(f"arithmetic: {family}, not {expected['arithmetic']}")
    return wrong


def apart(program: Drawn, answer: Any, seed: int) -> float:
    """The largest difference, in levels, of the pipeline found from the program on new images."""
    generator = np.random.default_rng(seed)
    largest = 0.0
    for number in range(6):
        h, w = (int(v) for v in generator.integers(40, 420, 2))
        picture = generator.integers(0, 256, (h // 4 + 1, w // 4 + 1, 3), dtype=np.uint8)
        if number % 2:
            picture = generator.integers(0, 256, (h, w, 3), dtype=np.uint8)
        else:
            picture = cv2.resize(picture, (w, h), interpolation=cv2.INTER_CUBIC)
        try:
            wanted = program.numbers(picture)
        except Exception:
            continue  # an image that the program rejects
        image = torch.from_numpy(picture).movedim(-1, 0)[None]
        got = answer.pipeline(image)[0].double().numpy()
        if got.shape != wanted.shape:
            return math.inf
        gain = np.abs(np.asarray(answer.gain))[:, None, None]
        largest = max(largest, float((np.abs(got - wanted) / gain).max()))
    return largest


def _array(function: Callable[[np.ndarray], Any]) -> Drawn:
    return Drawn(function, "array", "trap", {"batched": False, "layout": "HWC"})


def _jpeg(x: np.ndarray, quality: int = 90) -> np.ndarray:
    file = io.BytesIO()
    Image.fromarray(x).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file))


def _thumbnail(x: np.ndarray) -> np.ndarray:
    image = Image.fromarray(x)
    image.thumbnail((96, 96))
    return np.asarray(image)


def traps() -> dict[str, Drawn]:
    """Programs outside the contract, by name; none of them may be named."""
    small = lambda x, n=64, how=cv2.INTER_LINEAR: cv2.resize(x, (n, n), interpolation=how)  # noqa: E731
    noise = np.random.default_rng(0)

    def area_or_linear(x: np.ndarray) -> np.ndarray:
        shrinks = min(x.shape[:2]) >= 128
        return small(x, 128, cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)

    def wrong_once(x: np.ndarray) -> np.ndarray:
        y = small(x, 96).copy()
        y.reshape(-1)[::1000] ^= 1
        return y

    def wrong_far(x: np.ndarray) -> np.ndarray:
        y = small(x, 96).copy()
        return y ^ 1 if min(x.shape[:2]) > 4 * 96 + 16 else y

    pil = Image.fromarray
    kinds: dict[str, Callable[[np.ndarray], Any]] = {
        "random crop": lambda x: x[noise.integers(9) :][:200, :200],
        "two resizes": lambda x: small(small(x, 200), 64),
        "two resizes, Pillow": lambda x: np.asarray(pil(x).resize((150, 150)).resize((64, 64))),
        "jpeg": lambda x: _jpeg(small(x)),
        "two files first": lambda x: small(_jpeg(_jpeg(x, 60))),
        "thumbnail": _thumbnail,
        "reducing gap": lambda x: np.asarray(pil(x).resize((64, 64), reducing_gap=1.5)),
        "area down, linear up": area_or_linear,
        "mirrored": lambda x: small(x)[:, ::-1],
        "upside down": lambda x: small(x)[::-1],
        "turned": lambda x: np.rot90(small(x)),
        "transposed": lambda x: small(x).transpose(1, 0, 2),
        "a level in a thousand pixels": wrong_once,
        "a level above a scale of 4": wrong_far,
        "inverted only above 128": lambda x: np.where(small(x) > 128, 255 - small(x), small(x)),
        "clahe": lambda x: np.stack([cv2.equalizeHist(c) for c in small(x).transpose(2, 0, 1)]),
        "auto contrast": lambda x: np.asarray(ImageOps.autocontrast(pil(small(x)))),
        "posterize": lambda x: np.asarray(ImageOps.posterize(pil(small(x)), 4)),
        "solarize": lambda x: np.asarray(ImageOps.solarize(pil(small(x)), 128)),
        "sharpened": lambda x: np.asarray(pil(small(x)).filter(ImageFilter.SHARPEN)),
        "median": lambda x: cv2.medianBlur(small(x), 3),
        "hsv": lambda x: cv2.cvtColor(small(x), cv2.COLOR_RGB2HSV),
        "lab": lambda x: cv2.cvtColor(small(x), cv2.COLOR_RGB2LAB),
        "yuv": lambda x: cv2.cvtColor(small(x), cv2.COLOR_RGB2YUV),
        "swapped red and green": lambda x: small(x)[..., [1, 0, 2]],
        "edges": lambda x: cv2.Sobel(small(x), cv2.CV_32F, 1, 0),
        "hash": lambda x: (small(x) > small(x).mean()).astype(np.float32),
        "patches": lambda x: small(x).reshape(8, 8, 8, 8, 3).transpose(0, 2, 1, 3, 4),
        "standardised": lambda x: (small(x) - small(x).mean()) / (small(x).std() + 1e-9),
        "divided by its largest": lambda x: small(x) / max(1.0, float(small(x).max())),
        "stretched": lambda x: (small(x) - float(small(x).min())) / max(1.0, np.ptp(small(x))),
        "reflected": lambda x: np.asarray(
            cv2.copyMakeBorder(small(x), 8, 8, 8, 8, cv2.BORDER_REFLECT)
        ),
        "warped": lambda x: cv2.warpAffine(
            small(x), np.float32([[1, 0.1, 0], [0, 1, 0]]), (64, 64)
        ),
        "turned a little": lambda x: np.asarray(pil(small(x)).rotate(3)),
        "noise": lambda x: small(x) + noise.normal(size=(64, 64, 3)),
        "palette": lambda x: np.asarray(pil(small(x)).quantize(16).convert("RGB")),
        "one colour": lambda x: np.full((64, 64, 3), x.mean()),
        "five crops": lambda x: np.stack([small(x)] * 5),
        "row dropped": lambda x: np.concatenate([small(x)[:30], small(x)[31:]]),
    }
    for power in (0.45, 2.2):
        kinds[f"gamma {power}"] = lambda x, p=power: (small(x) / 255.0) ** p
    for sigma in (0.6, 1.5):
        kinds[f"blur {sigma}"] = lambda x, s=sigma: small(cv2.GaussianBlur(x, (0, 0), s))
        kinds[f"blurred after {sigma}"] = lambda x, s=sigma: cv2.GaussianBlur(small(x), (0, 0), s)
    for quality in (50, 95):
        kinds[f"webp {quality}"] = lambda x, q=quality: cv2.imdecode(
            cv2.imencode(".webp", small(x), [cv2.IMWRITE_WEBP_QUALITY, q])[1], 1
        )
    for side in (31, 77, 180):
        kinds[f"pyramid {side}"] = lambda x, n=side: small(cv2.pyrDown(x), n)
    kinds |= hostile_programs.PROGRAMS | hostile_programs.BY_PILLOW
    return {name: _array(function) for name, function in kinds.items()}


__all__ = ["LIBRARIES", "Drawn", "apart", "draw", "installed", "mistakes", "traps"]
