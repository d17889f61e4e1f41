"""The demonstration's figure."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

from warpkit.cli.demo.work import HIDDEN, STAGES, TURN, ZOOM, Comparison, Reach, Recovery

INK, GREY, FAINT, ACCENT = "#1b1f24", "#6b7280", "#eef0f3", "#d1495b"
WIDTH = 12.0
"""Inches; at 100 dots each, so that a front page shows the figure unscaled."""


def draw(image: Tensor, comparison: Comparison, reach: Reach, recovery: Recovery) -> Figure:
    """The figure of two rows: the same pixels as OpenCV, and what gradients give."""
    (top, bottom), figure = panels(image.shape[-1] / image.shape[-2])
    height, width = image.shape[-2:]
    picture(top[0], image, "Photograph", f"{width} x {height} pixels")
    turned = f"turned by {TURN:g}°, {ZOOM:g} times as large"
    picture(top[1], comparison.warped / 255, "warpkit.warp_affine", turned)
    difference(top[2], top[3], comparison)
    seen = f"{reach.fraction:.1%} of the photograph's pixels"
    picture(bottom[0], dimmed(image, reach.seen), "Where the gradient arrives", seen)
    picture(bottom[1], recovery.target, "A hidden warp", f"angle {HIDDEN[0]:.3f}°")
    found = f"angle {recovery.angles[-1]:.3f}°, off by {recovery.error:.3f}°"
    picture(bottom[2], recovery.found, "Found by gradient descent", found)
    descent(bottom[3], recovery)
    return figure


def panels(aspect: float) -> tuple[list[list[Axes]], Figure]:
    """Two rows of four panels that fit the photograph, each row under its heading, in inches."""
    margin, gap, heading, captions, below = 0.3, 0.22, 0.5, 0.5, 0.12
    panel_width = (WIDTH - 2 * margin - 3 * gap) / 4
    panel_height = min(max(panel_width / aspect, 1.4), 4.0)
    row, labels = heading + captions + panel_height + below, 0.35
    height = 2 * row + labels
    figure = Figure(figsize=(WIDTH, height), dpi=100, facecolor="white")
    FigureCanvasAgg(figure)
    rows = []
    for r, text in enumerate(("The same pixels as OpenCV", "Gradients to image and matrix")):
        y = height - r * row - heading
        figure.text(margin / WIDTH, y / height, text, size=15, weight="bold", color=INK)
        low = (y - captions - panel_height) / height
        lefts = [(margin + i * (panel_width + gap)) / WIDTH for i in range(4)]
        rows.append(
            [figure.add_axes((x, low, panel_width / WIDTH, panel_height / height)) for x in lefts]
        )
    return rows, figure


def caption(axes: Axes, title: str, note: str, left: float = 0.0) -> None:
    """A title and a line of figures above a panel, starting `left` points to its left."""
    at = {"xycoords": "axes fraction", "textcoords": "offset points", "annotation_clip": False}
    axes.annotate(title, (0, 1), (-left, 19), size=10.5, color=INK, **at)
    axes.annotate(note, (0, 1), (-left, 6), size=9, color=GREY, **at)


def picture(axes: Axes, image: Tensor, title: str, note: str) -> None:
    """A panel with an image (3, H, W) in [0, 1]."""
    axes.imshow(image.clamp(0, 1).permute(1, 2, 0).numpy(), interpolation="antialiased")
    axes.set_axis_off()
    axes.set_anchor("N")  # under its caption, also where the panel is taller
    caption(axes, title, note)


def difference(theirs: Axes, apart: Axes, comparison: Comparison) -> None:
    """OpenCV's result, and how far it is from ours, brightened."""
    if comparison.theirs is None:
        for axes, title in ((theirs, "cv2.warpAffine"), (apart, "Difference")):
            axes.set(xticks=[], yticks=[], facecolor=FAINT)
            axes.spines[:].set_visible(False)
            caption(axes, title, f"OpenCV is {comparison.version}")
        return
    picture(theirs, comparison.theirs / 255, "cv2.warpAffine", f"OpenCV {comparison.version}")
    worst = int(comparison.apart.max())
    times = 255 // worst if worst else 255
    note = f"max |diff| {worst}: {comparison.differing}"
    picture(apart, comparison.apart / 255 * times, f"Difference x {times}", note)


def dimmed(image: Tensor, seen: Tensor) -> Tensor:
    """The image, pale and grey where no gradient arrives.

    image (C, H, W) in [0, 1]; seen (H, W), bool.
    """
    pale = 0.9 + 0.1 * image.mean(0, keepdim=True).expand_as(image)
    return image.where(seen, pale)


def descent(axes: Axes, recovery: Recovery) -> None:
    """The error of the angle after every step, with the sizes of image it was found in."""
    box, labels = axes.get_position(), 0.34  # inches that the numbers at its left take
    part = labels / WIDTH
    axes.set_position((box.x0 + part, box.y0, box.width - part, box.height))
    caption(axes, "Error of the angle", "degrees, after every step", left=72 * labels)
    errors = np.abs(np.array(recovery.angles) - HIDDEN[0])
    axes.semilogy(errors, color=ACCENT, linewidth=1.6)
    axes.set_xlim(0, len(errors) - 1)
    begin, middle = 0, axes.get_xaxis_transform()
    for i, (shrink, (_, steps, _)) in enumerate(zip(recovery.shrinks, STAGES, strict=True)):
        if i % 2 == 0:
            axes.axvspan(begin, begin + steps, color=FAINT, linewidth=0)
        size = f"1/{shrink}" if shrink > 1 else "full"
        style = {"size": 8, "color": GREY, "ha": "center", "va": "top", "transform": middle}
        axes.text(begin + steps / 2, 0.96, size, **style)
        begin += steps
    ends = list(accumulate(steps for _, steps, _ in STAGES))
    axes.set_xticks([0, *ends[:-2], ends[-1]])  # the last stage is too short for both its ends
    axes.yaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.tick_params(labelsize=8, colors=GREY, length=2)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.set_xlabel("steps (top: size of the images)", size=8, color=GREY, labelpad=2)
