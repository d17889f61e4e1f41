"""Draws the figure of the demonstration."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

from warpkit.cli.demo.work import EXPOSURE, HIDDEN, TURN, ZOOM, Comparison, Reach, Recovery

INK, GREY, FAINT, ACCENT = "#1b1f24", "#6b7280", "#eef0f3", "#d1495b"
WIDTH = 12.0
"""Inches, at 100 dots each: a web page can show the figure without scaling."""


def draw(image: Tensor, comparison: Comparison, reach: Reach, recovery: Recovery) -> Figure:
    """A figure with two rows: OpenCV's pixels are reproduced, and gradients find a hidden warp."""
    (top, bottom), figure = panels(image.shape[-1] / image.shape[-2])
    height, width = image.shape[-2:]
    picture(top[0], image, "Photograph", f"{width} x {height} pixels")
    turned = f"turned by {TURN:g}°, {ZOOM:g} times as large"
    picture(top[1], comparison.warped / 255, "warpkit.warp_affine", turned)
    difference(top[2], top[3], comparison)
    share = f"{reach.fraction:.1%} of the photograph's pixels"
    picture(bottom[0], dim(image, reach.mask), "Where the gradient arrives", share)
    exposure = " and darker" if EXPOSURE[0] < 1 else ""
    picture(bottom[1], recovery.target, "A hidden warp", f"angle {HIDDEN[0]:.3f}°{exposure}")
    angle = f"angle {recovery.angle:.3f}°, off by {recovery.error:.3f}°"
    picture(bottom[2], recovery.picture, "Found by warpkit.align", angle)
    off = f"corners {recovery.corners:.3f} pixels off"
    picture(bottom[3], recovery.tiles, "Both, tile by tile", off)
    return figure


def panels(aspect: float) -> tuple[list[list[Axes]], Figure]:
    """Two rows of four panels with the photograph's aspect, in inches, each row with a heading."""
    margin, gap, heading, captions, below = 0.3, 0.22, 0.5, 0.5, 0.12
    panel_width = (WIDTH - 2 * margin - 3 * gap) / 4
    panel_height = min(max(panel_width / aspect, 1.4), 4.0)
    row = heading + captions + panel_height + below
    height = 2 * row + below
    figure = Figure(figsize=(WIDTH, height), dpi=100, facecolor="white")
    FigureCanvasAgg(figure)
    rows = []
    for r, text in enumerate(("The same pixels as OpenCV", "Gradients, and what they find")):
        y = height - r * row - heading
        figure.text(margin / WIDTH, y / height, text, size=15, weight="bold", color=INK)
        low = (y - captions - panel_height) / height
        lefts = [(margin + i * (panel_width + gap)) / WIDTH for i in range(4)]
        rows.append(
            [figure.add_axes((x, low, panel_width / WIDTH, panel_height / height)) for x in lefts]
        )
    return rows, figure


def caption(axes: Axes, title: str, note: str) -> None:
    """A title and a line of numbers above a panel."""
    at = {"xycoords": "axes fraction", "textcoords": "offset points", "annotation_clip": False}
    axes.annotate(title, (0, 1), (0, 19), size=10.5, color=INK, **at)
    axes.annotate(note, (0, 1), (0, 6), size=9, color=GREY, **at)


def picture(axes: Axes, image: Tensor, title: str, note: str) -> None:
    """A panel with an image (3, H, W) in [0, 1]."""
    axes.imshow(image.clamp(0, 1).permute(1, 2, 0).numpy(), interpolation="antialiased")
    axes.set_axis_off()
    axes.set_anchor("N")  # directly below its caption, even if the panel is taller
    caption(axes, title, note)


def difference(theirs: Axes, apart: Axes, comparison: Comparison) -> None:
    """OpenCV's result, and its difference from ours, brightened."""
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


def dim(image: Tensor, mask: Tensor) -> Tensor:
    """The image, with pixels that get no gradient pale and grey.

    image (C, H, W) in [0, 1]; mask (H, W), bool.
    """
    pale = 0.9 + 0.1 * image.mean(0, keepdim=True).expand_as(image)
    return image.where(mask, pale)
