"""A parity report: runs the suite over all settings, and writes the results."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import warpkit
from warpkit.core import checks
from warpkit.core.environment import import_optional, processor
from warpkit.core.progress import progress_bar
from warpkit.core.torch_threads import one_thread
from warpkit.validation.calls import by_opencv, by_warpkit
from warpkit.validation.metrics import Figures
from warpkit.validation.pages import can_render
from warpkit.validation.resizes import ResizeRow, resize_peers, resize_settings, run_resize
from warpkit.validation.results import Results, RowPictures
from warpkit.validation.suite import (
    CROP,
    PEER_DTYPES,
    Row,
    Setting,
    Suite,
    crop,
    name_images,
    settings,
)

PICTURES = 6
"""The number of rows that are shown as pictures."""

RESIZED = Setting("affine", "bilinear", "constant", "uint8", 3)
"""The setting whose images are also used for resizes."""


@dataclass(frozen=True, repr=False)
class ParityReport(Results):
    """What `parity_suite` returns."""

    def __repr__(self) -> str:
        state = "passed" if self.promised else "nothing promised"
        state = state if self.passed else "FAILED"
        return f'ParityReport({state}: arithmetic "{self.arithmetic}", {self.verdict})'

    def _repr_html_(self) -> str | None:
        """The HTML for a notebook's cell; None if the cell should show the text instead."""
        from warpkit.validation.html import render_cell

        return render_cell(self) if can_render() else None

    def to_table(self) -> str:
        """A summary as text, with one line for each map and interpolation."""
        import_optional("rich.console", "to_table", "a table")
        from warpkit.validation.table import as_text

        return as_text(self)

    def to_json(self, path: str | Path) -> None:
        """Write every row; null stands for infinity, and for settings that a peer does not
        support."""
        text = json.dumps(self.as_dict(), allow_nan=False)
        Path(path).write_text(text.replace('{"map"', '\n{"map"') + "\n", encoding="utf-8")

    def to_html(self, path: str | Path) -> None:
        """Write a self-contained page: a summary, pictures, and a table with filters."""
        import_optional("rich.console", "to_html", "a page")
        from warpkit.validation.html import render

        Path(path).write_text(render(self), encoding="utf-8")

    def as_dict(self) -> dict[str, Any]:
        """What `to_json` writes."""
        return {
            "passed": self.passed,
            "verdict": self.verdict,
            "arithmetic": self.arithmetic,
            "environment": self.environment,
            "images": list(self.images),
            "size": list(CROP),
            "rows": [row_as_dict(row) for row in self.rows],
            "resizes": [resize_as_dict(row) for row in self.resizes],
        }


def row_as_dict(row: Row) -> dict[str, Any]:
    """One row of JSON."""
    parts = {"all": row.parity, "interior": row.parity.interior, "border": row.parity.border}
    return about_row(row, {name: figures_as_dict(part) for name, part in parts.items()})


def resize_as_dict(row: ResizeRow) -> dict[str, Any]:
    """One row of JSON about `resize`."""
    return {"call": row.setting.call, **about_row(row, figures_as_dict(row.figures))}


def about_row(row: Row | ResizeRow, ours: dict[str, Any]) -> dict[str, Any]:
    """A row of JSON with the figures of warpkit."""
    return {
        **vars(row.setting),
        "passed": row.passed,
        "promised": row.promise.where,
        "reason": row.promise.reason,
        "warpkit": ours,
        "peers": {name: peer and figures_as_dict(peer) for name, peer in row.peers.items()},
    }


def figures_as_dict(part: Figures) -> dict[str, float | None]:
    """Figures as JSON; values that JSON cannot express become None."""
    names = ("differing", "total", "max_abs", "mean_abs", "psnr")
    values = {name: getattr(part, name) for name in names}
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def make_report(
    name: str,
    images: Tensor | Sequence[Tensor] | Mapping[str, Tensor],
    cv2: Any,
    arithmetic: str,
    progress: bool,
) -> ParityReport:
    """Run the suite and choose the rows to show as pictures."""
    checks.check_bool(name, "progress", progress)
    photographs = {
        key: checks.check_image(name, "images", i) for key, i in name_images(name, images).items()
    }
    if not photographs:
        checks.fail(name, "images", "at least one", "none")
    for image in photographs.values():
        if image.ndim != 3:
            checks.fail(name, "images", "each of shape (C, H, W)", checks.shape_of(image))
    suite = Suite([crop(image.cpu()) for image in photographs.values()], cv2, arithmetic)
    with one_thread():
        rows = run(suite, progress)
        scenes = tuple(scene(suite, row) for row in worst(rows))
        resizes = run_resizes(suite, progress)
    names = (*photographs, "white noise")
    return ParityReport(rows, arithmetic, environment(cv2, suite), names, scenes, resizes)


def run(suite: Suite, progress: bool) -> tuple[Row, ...]:
    """Every row of the warps, with a bar on the terminal if `progress` is set."""
    todo, rows = settings(), []
    label = f"comparing with OpenCV {suite.cv2.__version__}"
    with progress_bar(label, total=len(todo), visible=progress) as advance:
        for setting in todo:
            rows.append(suite.run(setting))
            advance(f"{setting.map} {setting.interpolation}")
    return tuple(rows)


def run_resizes(suite: Suite, progress: bool) -> tuple[ResizeRow, ...]:
    """Every row of `resize`, on the photographs and white noise."""
    image = suite.images(RESIZED)
    todo, rows = resize_settings(suite.cv2), []
    with progress_bar("comparing resizes", total=len(todo), visible=progress) as advance:
        for setting in todo:
            rows.append(run_resize(setting, image, suite.cv2, suite.arithmetic))
            advance(f"{setting.library} {setting.interpolation}")
    return tuple(rows)


def worst(rows: Sequence[Row]) -> list[Row]:
    """The rows to show: broken ones; otherwise one per exception, and 8-bit colour with peers."""

    def apart(row: Row) -> float:
        return -row.parity.max_abs / row.white

    broken = sorted((row for row in rows if not row.passed), key=apart)
    if broken:
        return unlike(broken, lambda row: (row.setting.map, row.setting.interpolation))[:PICTURES]
    differing = sorted((row for row in rows if row.parity.differing), key=apart)
    chosen = unlike(differing, lambda row: row.promise.reason)[: PICTURES // 2]
    usual = [
        row
        for row in rows
        if row.setting.dtype in PEER_DTYPES
        and (row.setting.channels, row.setting.border) == (3, "constant")
        and row.setting.interpolation != "nearest"  # differs only at ties, if at all
    ]
    usual.sort(key=seen_apart, reverse=True)
    return [*chosen, *unlike(usual, lambda row: (row.setting.map, row.setting.interpolation))][
        :PICTURES
    ]


def seen_apart(row: Row) -> tuple[int, float]:
    """How many peers support a row, and the sum of the shares of their values that differ."""
    peers = [peer for peer in row.peers.values() if peer is not None]
    return len(peers), sum(peer.fraction for peer in peers)


def unlike(rows: Sequence[Row], key: Callable[[Row], object]) -> list[Row]:
    """The first row of every key."""
    first: dict[object, Row] = {}
    for row in rows:
        first.setdefault(key(row), row)
    return list(first.values())


def scene(suite: Suite, row: Row) -> RowPictures:
    """The pictures of the first photograph under a row's setting."""
    call = suite.call(row.setting)
    results = {"warpkit": by_warpkit(call, suite.arithmetic)}
    if any(peer is not None for peer in row.peers.values()):
        others = suite.others(row.setting, call)
        results.update({name: o for name, o in others.items() if o is not None})
    expected = by_opencv(suite.cv2, call, "parity_suite")
    pictures = {name: result[0] for name, result in results.items()}
    return RowPictures(row, call.image[0], expected[0], pictures)


def environment(cv2: Any, suite: Suite) -> dict[str, str]:
    """The versions and the machine that the figures depend on."""
    return {
        "warpkit": warpkit.__version__,
        "opencv": cv2.__version__,
        "opencv_vector_code": "on" if cv2.useOptimized() else "off",
        **{
            name: v
            for name, v in {**suite.peers, **resize_peers()}.items()
            if name != "grid_sample"
        },
        "torch": torch.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": processor(),
        "date": date.today().isoformat(),
    }
