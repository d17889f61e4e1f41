"""
The whole sphere
================

An equirectangular picture of 360 x 180 degrees, views of cameras in its centre, and the six faces
of its cube map. No seams are visible: rows continue beyond the poles, and columns wrap around.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_sample_image

import warpkit as wk
from warpkit import camera

photo = torch.from_numpy(load_sample_image("china.jpg").copy()).permute(2, 0, 1) / 255
size = (256, 512)
rows, columns = torch.meshgrid(torch.arange(256), torch.arange(512), indexing="ij")
checks = ((rows // 32 + columns // 32) % 2).float()
tint = torch.stack([(2 * torch.pi * (columns / 512 + k / 3)).cos() for k in range(3)])
sphere = 0.45 + 0.25 * checks + 0.2 * tint
for yaw in (0.0, 90.0, 180.0, 270.0):  # paste the photograph four times
    turn = torch.eye(3)
    turn[::2, ::2] = wk.rotation_matrix((0.0, 0.0), yaw)[:, :2]
    alpha = torch.cat((photo, torch.ones_like(photo[:1])))
    laid = camera.to_sphere(alpha, size, field_of_view=60, rotation=turn, antialias=True)
    sphere = sphere * (1 - laid[3]) + laid[:3]

up = [[1.0, 0, 0], [0, 0, 1], [0, -1, 0]]
views = {
    "90 degrees, ahead": camera.from_sphere(sphere, (192, 192), field_of_view=90, antialias=True),
    "90 degrees, straight up": camera.from_sphere(
        sphere, (192, 192), field_of_view=90, rotation=up, antialias=True
    ),
    "fisheye, 300 degrees": camera.from_sphere(
        sphere, (192, 192), field_of_view=300, model="fisheye", antialias=True
    ),
}
faces = dict(zip(("+x", "-x", "+y", "-y", "+z", "-z"), camera.to_cube(sphere, 128), strict=True))

figure = plt.figure(figsize=(10.6, 7.4), layout="constrained")
grid = figure.add_gridspec(3, 12)
shown = [(grid[0, 2:10], "equirectangular", sphere)]
shown += [(grid[1, 4 * k : 4 * k + 4], *item) for k, item in enumerate(views.items())]
shown += [(grid[2, 2 * k : 2 * k + 2], *item) for k, item in enumerate(faces.items())]
for place, name, view in shown:
    axes = figure.add_subplot(place)
    axes.imshow(view.clamp(0, 1).permute(1, 2, 0).numpy())
    axes.set_title(name)
    axes.set_axis_off()
