"""A comparison as one page: findings, both results, where they differ, and a magnified piece."""

from __future__ import annotations

import base64
import typing
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

if typing.TYPE_CHECKING:
    from warpkit.validation.programs.comparison import PipelineComparison, Shown

PIECE = 24
"""Pixels of a side of the magnified piece, where the results differ the most."""
TIMES = 10


def render(comparison: PipelineComparison) -> str:
    """The page's text."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    source = files("warpkit.validation.programs") / "comparison.html.jinja"
    template = environment.from_string(source.read_text("utf-8"))
    scenes = [scene for scene in map(_scene, comparison.shown) if scene is not None]
    return template.render(comparison=comparison, scenes=scenes, infinite=float("inf"))


def _scene(shown: Shown) -> dict[str, Any] | None:
    """The pictures of one image, as addresses that hold them."""
    if shown.first is None or shown.second is None:
        return None
    first, second = _colour(shown.first), _colour(shown.second)
    scene: dict[str, Any] = {"first": _address(first), "second": _address(second)}
    scene["sizes"] = [f"{x.shape[0]} x {x.shape[1]}" for x in (first, second)]
    scene["apart"] = None
    if first.shape != second.shape:
        return scene
    apart = np.abs(shown.first - shown.second).max(-1)
    strength = 255 / max(1.0, float(apart.max()))
    scene["apart"] = _address(_colour((apart * strength)[..., None]))
    scene["largest"] = f"{float(apart.max()):.3g}"
    row, column = np.unravel_index(int(apart.argmax()), apart.shape)
    top, left = (
        int(np.clip(at - PIECE // 2, 0, max(0, side - PIECE)))
        for at, side in zip((row, column), apart.shape, strict=True)
    )
    piece = (slice(top, top + PIECE), slice(left, left + PIECE))
    scene["pieces"] = [_address(_magnified(x[piece])) for x in (first, second)]
    scene["place"] = f"row {top}, column {left}"
    return scene


def _colour(levels: NDArray[Any]) -> NDArray[np.uint8]:
    """Levels (h, w, 1 or 3) as a picture (h, w, 3)."""
    picture = levels.round().clip(0, 255).astype(np.uint8)
    return np.broadcast_to(picture, (*picture.shape[:2], 3))


def _magnified(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return picture.repeat(TIMES, 0).repeat(TIMES, 1)


def _address(picture: NDArray[np.uint8]) -> str:
    from PIL import Image

    file = BytesIO()
    Image.fromarray(np.ascontiguousarray(picture)).save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
