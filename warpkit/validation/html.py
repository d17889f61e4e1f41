"""Writes a parity report as a self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from torch import Tensor

from warpkit.engine.definitions.rules import INTERPOLATIONS
from warpkit.validation import pages
from warpkit.validation.metrics import Figures
from warpkit.validation.resizes import ResizeRow
from warpkit.validation.results import Results, RowPictures
from warpkit.validation.suite import CROP, PEER_DTYPES, Row
from warpkit.validation.table import LIBRARIES, groups, left_out, levels, number

BLACK = {"int16": -32768.0}
"""The value of black, where it is not 0."""

FILTERS = ("map", "interpolation", "border", "dtype", "channels", "promised")


def render(report: Results) -> str:
    """The page's text."""
    peers = list(report.rows[0].peers) if report.rows else []
    resize_peers = report.resizes[0].peers if report.resizes else ()
    lines = [line(row, peers) for row in report.rows]
    options = {name: list(dict.fromkeys(str(x[name]) for x in lines)) for name in FILTERS}
    return pages.render(
        "page.html.jinja",
        report=report,
        opencv=report.environment["opencv"],
        values=sum(row.parity.total for row in report.rows),
        size=CROP,
        interpolations=INTERPOLATIONS,
        summaries={dtype: summary(report.rows, dtype, peers) for dtype in PEER_DTYPES},
        left_out=left_out([*report.rows, *report.resizes]),
        exempt=sum(row.passed and row.parity.differing > 0 for row in report.rows),
        resizes=[resize_lines(report, dtype) for dtype in PEER_DTYPES],
        resize_names=["warpkit", *(LIBRARIES.get(name, name) for name in resize_peers)],
        scenes=[shown(scene) for scene in report.scenes],
        peers=peers,
        lines=lines,
        filters=options,
    )


def render_cell(report: Results) -> str:
    """What a notebook shows: the verdict, the summary and one row's pictures."""
    peers = list(report.rows[0].peers) if report.rows else []
    # if nothing is broken, the last rows also have other libraries' results
    scene = report.scenes[0 if report.broken else -1] if report.scenes else None
    return pages.render(
        "cell.html.jinja",
        verdict=report.verdict[:1].upper() + report.verdict[1:] + ".",
        interpolations=INTERPOLATIONS,
        summaries={dtype: summary(report.rows, dtype, peers) for dtype in PEER_DTYPES},
        scene=scene and shown(scene),
    )


def line(row: Row, peers: Iterable[str]) -> dict[str, Any]:
    """One line of the large table."""
    parity = row.parity
    return {
        **vars(row.setting),
        "promised": row.promise.where,
        "reason": row.promise.reason,
        "passed": row.passed,
        "differing": parity.differing,
        "share": share(parity.differing, parity.total),
        "largest": number(levels(row, parity)),
        "interior": parity.interior.differing,
        "border_differing": parity.border.differing,
        "psnr": "∞" if parity.psnr == float("inf") else f"{parity.psnr:.1f}",
        "peers": [cell(row, row.peers[name]) for name in peers],
    }


def cell(row: Row, peer: Figures | None) -> str:
    """A cell with a peer's largest difference in levels."""
    return "-" if peer is None else number(levels(row, peer))


def share(differing: int, total: int) -> str:
    """The share that differs; a share above zero is never printed as zero."""
    if not differing:
        return "0 %"
    percent = 100 * differing / total
    return f"{percent:.1f} %" if percent >= 0.1 else f"{percent:.1g} %"


def summary(rows: Iterable[Row], dtype: str, peers: list[str]) -> list[dict[str, Any]]:
    """One line per library and interpolation: its distance from OpenCV in all settings it
    supports."""
    lines = []
    for name in ("warpkit", *peers):
        cells = []
        for interpolation in INTERPOLATIONS:
            parts = [
                (row, (row.guaranteed or row.parity) if name == "warpkit" else row.peers[name])
                for row in rows
                if row.setting.dtype == dtype and row.setting.interpolation == interpolation
            ]
            cells.append(total([(row, part) for row, part in parts if part is not None]))
        lines.append({"name": name, "cells": cells, "call": "", "broken": False})
    return lines


def resize_lines(report: Results, dtype: str) -> tuple[str, list[dict[str, Any]]]:
    """One line per library and filter: the distance of warpkit and other libraries from it."""
    lines = []
    for (library, interpolation), group in groups(report.resizes, "library"):
        rows = [row for row in group if row.setting.dtype == dtype]
        totals = [total([(row, row.figures) for row in rows])]
        for name in rows[0].peers if rows else ():
            parts = [(row, row.peers[name]) for row in rows]
            totals.append(total([(row, part) for row, part in parts if part is not None]))
        broken = any(not row.passed for row in group)
        name, call = f"{LIBRARIES[library]} {interpolation}", group[0].setting.call
        lines.append({"name": name, "call": call, "cells": totals, "broken": broken})
    return dtype, lines


def total(parts: Sequence[tuple[Row | ResizeRow, Figures]]) -> dict[str, Any]:
    """One cell of the summary; `heat` is 0 for equal results, 1 for less than a level, up to 4."""
    if not parts:
        return {"settings": 0, "heat": "none"}
    largest = max(levels(row, part) for row, part in parts)
    count = sum(part.total for _, part in parts)
    differing = sum(part.differing for _, part in parts)
    heat = 0 if not largest else 1 + sum(largest > limit for limit in (1.5, 10, 60))
    return {
        "settings": len(parts),
        "heat": heat,
        "share": share(differing, count),
        "largest": number(largest),
    }


def shown(scene: RowPictures) -> dict[str, Any]:
    """The pictures of one row."""
    row, dtype = scene.row, scene.row.setting.dtype
    ours = {"source": scene.source, "OpenCV": scene.opencv, "warpkit": scene.others["warpkit"]}
    panels = [
        {"title": name, "note": "", "src": png(to_8_bits(image, dtype, row.white)), "first": False}
        for name, image in ours.items()
    ]
    for name, image in scene.others.items():
        apart = (image.double() - scene.opencv.double()).abs() * (255 / row.white)
        # if there are peers, the differences get a line of their own
        first = name == "warpkit" and len(scene.others) > 1
        panels.append({**difference(name, apart), "first": first})
    return {"row": row, "setting": row.setting, "panels": panels}


def difference(name: str, apart: Tensor) -> dict[str, str]:
    """A picture of a difference (C, H, W) in levels: where it is, and how large for each pixel."""
    title, largest = f"|{name} - OpenCV|", apart.max().item()
    note = "0: every value is the same"
    if largest:
        count = f"{int((apart > 0).sum()):,} of {apart.numel():,} differ"
        note = f"{count}, by up to {number(largest)}"
    picture = pages.difference(apart.amax(0).numpy())
    return {"title": title, "note": note, "src": pages.png_address(picture)}


def to_8_bits(image: Tensor, dtype: str, white: float) -> Tensor:
    """Converts (C, H, W) to values from 0 to 255."""
    return ((image.double() - BLACK.get(dtype, 0.0)) * (255 / white)).clamp(0, 255).round()


def png(picture: Tensor) -> str:
    """A data URL of an 8-bit image (C, H, W); a fourth channel is left out."""
    array = picture.round().byte().permute(1, 2, 0).numpy()
    return pages.png_address(array[..., :3] if array.shape[2] >= 3 else array[..., 0])
