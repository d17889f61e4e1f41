"""The figure of docs/indexing.md: value and gradient of the four lookups over the index."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import torch

import warpkit as wk

mpl.use("Agg")
import matplotlib.pyplot as plt

ARRAY = torch.tensor([1.0, 3.0, 2.0, 2.5, 0.5])
START, END, STEPS = -1.0, 5.0, 1201
BLUE, ORANGE = "#1f5fa8", "#d9730d"


def superposition(index: torch.Tensor) -> torch.Tensor:
    """A softmax over the distances to the index: a smooth distribution instead of two weights."""
    distance = index[:, None] - torch.arange(5.0)
    return wk.indexing.superposition_lookup(ARRAY, torch.softmax(-2 * distance**2, -1))


PANELS = {
    "linear_lookup(array, index)": lambda i: (wk.indexing.linear_lookup(ARRAY, i), None),
    "superposition_lookup(array,\nsoft_one_hot(index, 5))": lambda i: (
        wk.indexing.superposition_lookup(ARRAY, wk.indexing.soft_one_hot(i, 5)),
        None,
    ),
    "superposition_lookup(array,\nsoftmax(-2 (index - row)²))": lambda i: (superposition(i), None),
    "residual_lookup(array, index)": lambda i: wk.indexing.residual_lookup(ARRAY, i),
}


def draw(path: Path) -> None:
    """One column for each lookup, values above and derivatives below."""
    figure, axes = plt.subplots(
        2, 4, figsize=(13, 5.6), sharex=True, sharey="row", height_ratios=(3, 2), layout="tight"
    )
    for column, (title, lookup) in enumerate(PANELS.items()):
        index = torch.linspace(START, END, STEPS, requires_grad=True)
        value, residual = lookup(index)
        carrier = value if residual is None else residual  # the result that depends on the index
        (slope,) = torch.autograd.grad(carrier.sum(), index)
        x = index.detach()
        above, below = axes[:, column]
        above.plot(x, value.detach(), color=BLUE, label="value")
        if residual is not None:
            above.plot(x, residual.detach(), color=ORANGE, label="residual")
        above.plot(range(5), ARRAY, "o", color="black", label="array")
        above.set_title(title, fontsize=10, family="monospace")
        above.legend(fontsize=8, loc="upper right")
        name = "d value / d index" if residual is None else "d residual / d index"
        below.plot(x, slope, color=BLUE if residual is None else ORANGE, label=name)
        below.legend(fontsize=8, loc="upper right")
        below.set_xlabel("index")
        for axis in (above, below):
            axis.axvspan(START, 0, color="0.93")
            axis.axvspan(4, END, color="0.93")
            axis.grid(color="0.85", linewidth=0.6)
            axis.set_xlim(START, END)
    axes[0, 0].set_ylim(top=4.2)  # room for the legends
    axes[0, 0].set_ylabel("value")
    axes[1, 0].set_ylabel("derivative")
    figure.savefig(path, dpi=110)
