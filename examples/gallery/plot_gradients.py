"""
Where a gradient goes
=====================

These are the pixels that a warp's gradient reaches; white pixels get none. An enlarging warp reads
all pixels that it shows, but nearest skips some of them. A shrinking warp skips most pixels, unless
`antialias=True`.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_sample_image

import warpkit as wk

photo = torch.from_numpy(load_sample_image("flower.jpg").copy()).permute(2, 0, 1) / 255
photo = photo[:, 150:278, 256:384].contiguous().requires_grad_()
center = wk.image_center((128, 128))
turn = wk.rotation_matrix(center, 20.0, 1.15)
shrink = wk.rotation_matrix(center, 20.0, 0.3)
warps = (
    ("enlarged, turned", turn, {}),
    ("nearest", turn, {"interpolation": "nearest"}),
    ("at scale 0.3", shrink, {}),
    ("0.3, antialias=True", shrink, {"antialias": True}),
    ("moved by (10, 20)", [[1.0, 0.0, 10.0], [0.0, 1.0, 20.0]], {}),
)

figure, panels = plt.subplots(2, 5, figsize=(10.6, 4.7), layout="constrained")
for (above, below), (name, matrix, options) in zip(panels.T, warps, strict=True):
    warped = wk.warp_affine(photo, matrix, **options)
    reached = wk.gradient_support(warped, photo).mask.any(0)
    seen = torch.where(reached, photo.detach(), 0.9 + 0.1 * photo.detach())
    above.imshow(warped.detach().clamp(0, 1).permute(1, 2, 0).numpy())
    above.set_title(name)
    below.imshow(seen.permute(1, 2, 0).numpy(), interpolation="nearest")
    share = f"{reached.double().mean():.1%} get a gradient"
    for axes, under in ((above, ""), (below, share)):
        axes.set(xticks=[], yticks=[], xlabel=under)
