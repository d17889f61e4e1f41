"""The figure of docs/conventions.md: pixel centres, box edges, and the direction of a matrix."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from PIL import Image

import warpkit as wk

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import ConnectionPatch, Rectangle

ROOT = Path(__file__).parents[3]
INK, BLUE, RED = "#1b1f24", "#1f5fa8", "#d1495b"
WIDTH, HEIGHT = 4, 3
BOX = (1.0, 0.0, 3.0, 2.0)


def draw_pixels(axes: Axes) -> None:
    """An image of 4 x 3 pixels with the pixels' centres and edges and a box."""
    tones = np.linspace(0.72, 0.95, WIDTH * HEIGHT).reshape(HEIGHT, WIDTH)
    axes.imshow(tones, cmap="gray", vmin=0, vmax=1)
    for edge in range(WIDTH + 1):
        axes.plot((edge - 0.5,) * 2, (-0.5, HEIGHT - 0.5), color="white", linewidth=1.5)
        axes.text(edge - 0.5, -0.62, edge, color=RED, ha="center", va="bottom")
    for edge in range(HEIGHT + 1):
        axes.plot((-0.5, WIDTH - 0.5), (edge - 0.5,) * 2, color="white", linewidth=1.5)
        axes.text(-0.62, edge - 0.5, edge, color=RED, ha="right", va="center")
    x1, y1, x2, y2 = BOX
    frame = {"fill": False, "edgecolor": RED, "linewidth": 2.5, "zorder": 5}
    axes.add_patch(Rectangle((x1 - 0.5, y1 - 0.5), x2 - x1, y2 - y1, **frame))
    for y in range(HEIGHT):
        for x in range(WIDTH):
            axes.plot(x, y, "o", color=BLUE, markersize=5)
            axes.text(x, y + 0.12, f"({x}, {y})", color=BLUE, ha="center", va="top")
    center = wk.image_center((HEIGHT, WIDTH))
    axes.plot(*center, "+", color=INK, markersize=13, markeredgewidth=2)
    axes.text(center[0], center[1] - 0.12, f"image_center\n{center}", ha="center", va="bottom")
    axes.text(-0.5, -0.95, "an image of size (3, 4)", color=INK, fontsize=11)
    lines = (
        ("points (x, y): pixel centres are whole numbers", BLUE),
        ("boxes (x1, y1, x2, y2): pixel edges are whole numbers;", RED),
        ("the box (1, 0, 3, 2) is image[..., 0:2, 1:3]", RED),
    )
    for n, (words, color) in enumerate(lines):
        axes.text(-0.5, HEIGHT - 0.3 + 0.22 * n, words, color=color, va="top")
    axes.set(xlim=(-0.8, WIDTH - 0.45), ylim=(HEIGHT + 0.4, -1.1))
    axes.set_axis_off()


def draw_matrix(source: Axes, destination: Axes) -> None:
    """A photograph before and after a rotation, with one of its points."""
    with Image.open(ROOT / "data" / "images" / "astronaut.png") as file:
        pixels = np.asarray(file.convert("RGB").resize((128, 128)))
    image = torch.from_numpy(pixels.copy()).permute(2, 0, 1)
    matrix = wk.rotation_matrix(wk.image_center((128, 128)), 30.0, 0.8)
    warped = wk.warp_affine(image, matrix, border_value=235)
    point = torch.tensor([54.0, 33.0])
    end = wk.transform_points(matrix, point)
    for axes, picture, place in ((source, image, point), (destination, warped, end)):
        axes.imshow(picture.permute(1, 2, 0).numpy())
        axes.plot(*place, "o", color=RED, markersize=9, markeredgecolor="white")
        axes.set_axis_off()
    source.set_title("source: image", loc="left", color=INK)
    destination.set_title("destination: the warped image", loc="left", color=INK)
    ends = {"coordsA": source.transData, "coordsB": destination.transData, "color": RED}
    bend = {"connectionstyle": "arc3,rad=-0.25", "arrowstyle": "-|>", "linewidth": 2}
    arrow = ConnectionPatch(point.tolist(), end.tolist(), shrinkB=8, **bend, **ends)
    source.figure.add_artist(arrow)
    text = "destination = warp_affine(image, matrix)\n"
    text += "matrix = rotation_matrix(image_center((128, 128)), 30.0, 0.8)\n"
    text += "transform_points(matrix, (54, 33)) = "
    text += f"({end[0]:.1f}, {end[1]:.1f})\n"
    text += "A matrix maps source points to destination points.\n"
    text += "Positive angles are counter-clockwise on the screen."
    source.text(0, 136, text, color=INK, va="top")


def draw(path: Path) -> None:
    """Both pictures side by side."""
    plt.rcParams["font.size"] = 9.5
    figure = plt.figure(figsize=(10.4, 4.1))
    draw_pixels(figure.add_axes((0.0, 0.0, 0.45, 0.98)))
    draw_matrix(
        figure.add_axes((0.46, 0.34, 0.255, 0.6)), figure.add_axes((0.735, 0.34, 0.255, 0.6))
    )
    figure.savefig(path, dpi=100)
