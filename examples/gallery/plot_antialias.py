"""
Warps that do not alias
=======================

At scale 0.21 an output pixel covers about 23 source pixels, but a plain warp reads only 4 of them.
`antialias=True` averages all of them, and all of them get a gradient. `antialias=15` takes 15 x
15 samples per pixel and serves as the reference.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_sample_image

import warpkit as wk

photo = torch.from_numpy(load_sample_image("china.jpg").copy()).permute(2, 0, 1) / 255
size = (96, 144)
(x, y), (cx, cy) = wk.image_center(size), wk.image_center(photo.shape[-2:])
shrink = wk.affine_matrix(angle=17.0, scale=0.21, center=(cx, cy), translation=(x - cx, y - cy))
options = {"size": size, "border": "reflect_101"}
views = {
    "plain warp": wk.warp_affine(photo, shrink, **options),
    "antialias=True": wk.warp_affine(photo, shrink, antialias=True, **options),
    "antialias=15": wk.warp_affine(photo, shrink, antialias=15, **options),
}

figure, panels = plt.subplots(1, 3, figsize=(10.6, 2.8), layout="constrained")
for axes, (name, view) in zip(panels, views.items(), strict=True):
    error = (view - views["antialias=15"]).square().mean().sqrt() * 255
    axes.imshow(view.clamp(0, 1).permute(1, 2, 0).numpy(), interpolation="nearest")
    axes.set_title(name)
    axes.set(xticks=[], yticks=[], xlabel=f"{error:.1f} levels of 255 from the truth")
