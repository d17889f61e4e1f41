"""The experiments' pictures."""

from __future__ import annotations

from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor

INK, GREY, ACCENT, SECOND = "#1b1f24", "#6b7280", "#d1495b", "#1f5fa8"


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def grey_row(rows: dict[str, Tensor]) -> Figure:
    """Rows of grey images (N, 1, H, W), each under its name."""
    count = len(next(iter(rows.values())))
    figure = new_figure(0.95 * count, 1.15 * len(rows))
    axes = figure.subplots(len(rows), count, squeeze=False)
    for line, (name, images) in zip(axes, rows.items(), strict=True):
        line[0].set_title(name, loc="left", size=10, color=INK)
        for panel, image in zip(line, images, strict=True):
            panel.imshow(image[0].numpy(), cmap="gray", vmin=0, vmax=1)
            panel.set_axis_off()
    return figure


def save(path: Path, figure: Figure, colours: int | None = None) -> None:
    """Write a PNG and print its name; with few colours photographs take a third of the space."""
    figure.savefig(path, dpi=110 if colours is None else 80, facecolor="white")
    if colours is not None:
        picture = Image.open(path).convert("RGB")
        picture.quantize(colours, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"wrote {path}")
