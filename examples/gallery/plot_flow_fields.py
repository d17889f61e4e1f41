"""
Flow fields
===========

Several ways to make a flow, each shown by the grid that it warps. Dots mark points before and
after. Red pixels show where a field folds or has no inverse.
"""

import matplotlib.pyplot as plt
import torch

import warpkit as wk
from warpkit import flow

size = (144, 192)
y, x = torch.meshgrid(*(torch.arange(n) for n in size), indexing="ij")
lines = ((x % 16 < 2) | (y % 16 < 2)).double()
colors = torch.stack((0.55 + 0.45 * x / size[1], 0.75 + 0 * x, 0.55 + 0.45 * y / size[0]))
grid = colors * (1 - 0.75 * lines)  # (3, H, W)


def waves(pixels):
    """A smooth field (H, W, 2) that is zero at the edges."""
    v, u = torch.meshgrid(*(torch.linspace(0, 1, n).double() for n in size), indexing="ij")
    still = (16 * u * (1 - u) * v * (1 - v)).sqrt()
    return pixels * still[..., None] * torch.stack((torch.sin(9 * v), torch.cos(11 * u)), -1)


ends = [[16.0, 16.0], [176.0, 16.0], [16.0, 128.0], [176.0, 128.0]]
source = torch.tensor([*ends, [64.0, 72.0], [128.0, 72.0]]).double()
target = torch.tensor([*ends, [48.0, 100.0], [144.0, 44.0]]).double()
plate = flow.thin_plate_spline(source, target, size)

control = torch.zeros(7, 8, 2).double()
control[3, 3], control[3, 4] = torch.tensor([26.0, 14.0]), torch.tensor([-26.0, -14.0])

wild, calm = waves(30.0), waves(9.0)
bent, inverse = flow.integrate(wild), flow.invert(calm)
moved = wk.warp_flow(grid, calm)
views = {
    "a grid": (grid, None),
    "thin_plate_spline": (wk.warp_flow(grid, plate), None),
    "bspline, two control points": (wk.warp_flow(grid, flow.bspline(control, size)), None),
    "a velocity taken as a flow": (
        wk.warp_flow(grid, wild),
        flow.jacobian_determinant(wild) <= 0,
    ),
    "integrate: nothing folds": (
        wk.warp_flow(grid, bent),
        flow.jacobian_determinant(bent) <= 0,
    ),
    "a flow, then its inverse": (wk.warp_flow(moved, inverse.flow), ~inverse.valid),
}
red = torch.tensor([0.85, 0.15, 0.25]).double()[:, None, None]
figure, panels = plt.subplots(2, 3, figsize=(10.6, 5.6), layout="constrained")
for axes, (name, (view, marked)) in zip(panels.flat, views.items(), strict=True):
    shown = view if marked is None else torch.where(marked, red, view)
    axes.imshow(shown.clamp(0, 1).movedim(0, -1).numpy())
    axes.set_title(name)
    axes.set_axis_off()
panels[0, 1].plot(*torch.stack((source, target)).unbind(-1), color="#1f5fa8", lw=1)
panels[0, 1].plot(*source.T, "o", mfc="white", mec="#1f5fa8", ms=5)
panels[0, 1].plot(*target.T, "o", color="#d1495b", ms=5)
