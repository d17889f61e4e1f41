"""A comparison as a page: findings, both results, their differences, a magnified detail."""

from __future__ import annotations

import typing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpkit.validation import pages

if typing.TYPE_CHECKING:
    from warpkit.validation.programs.comparison import PipelineComparison, ResultPair

PIECE = 24
"""The side, in pixels, of the magnified part, in which the results differ the most."""
TIMES = 10


def render(comparison: PipelineComparison) -> str:
    """The page's text."""
    return _filled("comparison.html.jinja", comparison, None)


def render_cell(comparison: PipelineComparison) -> str:
    """The HTML for a notebook: the findings, and one image's pictures."""
    return _filled("comparison_cell.html.jinja", comparison, 1)


def _filled(template: str, comparison: PipelineComparison, count: int | None) -> str:
    pairs = zip(comparison.shown[:count], comparison.pictures, strict=False)
    scenes = [scene for scene in (_scene(*one) for one in pairs) if scene is not None]
    return pages.render(
        f"programs/{template}", comparison=comparison, scenes=scenes, infinite=float("inf")
    )


def _scene(pair: ResultPair, name: str) -> dict[str, Any] | None:
    """The pictures of one image, as data URLs."""
    if pair.first is None or pair.second is None:
        return None
    first, second = _colour(pair.first), _colour(pair.second)
    scene: dict[str, Any] = {
        "name": name,
        "first": pages.png_address(first),
        "second": pages.png_address(second),
    }
    scene["sizes"] = [f"{x.shape[0]} x {x.shape[1]}" for x in (first, second)]
    scene["apart"] = None
    if first.shape != second.shape:
        return scene
    apart = np.abs(pair.first - pair.second).max(-1)
    scene["apart"] = pages.png_address(pages.difference(apart))
    scene["largest"] = f"{float(apart.max()):.3g}"
    row, column = np.unravel_index(int(apart.argmax()), apart.shape)
    top, left = (
        int(np.clip(at - PIECE // 2, 0, max(0, side - PIECE)))
        for at, side in zip((row, column), apart.shape, strict=True)
    )
    piece = (slice(top, top + PIECE), slice(left, left + PIECE))
    scene["pieces"] = [pages.png_address(_magnified(x[piece])) for x in (first, second)]
    scene["place"] = f"row {top}, column {left}"
    return scene


def _colour(levels: NDArray[Any]) -> NDArray[np.uint8]:
    """Levels (h, w, 1 or 3) as a picture (h, w, 3)."""
    picture = levels.round().clip(0, 255).astype(np.uint8)
    return np.broadcast_to(picture, (*picture.shape[:2], 3))


def _magnified(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return picture.repeat(TIMES, 0).repeat(TIMES, 1)
