"""
Interpolations and borders
==========================

A piece of 40 x 40 pixels is enlarged 2.2 times and rotated by 20 degrees, with every interpolation
and every border. Lanczos rings at the black border; `reflect` repeats the last pixel and
`reflect_101` does not; `transparent` shows the background, a chequerboard, outside the image.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_sample_image

import warpkit as wk

photo = torch.from_numpy(load_sample_image("flower.jpg").copy()).permute(2, 0, 1)
piece = photo[:, 190:230, 300:340]  # (3, 40, 40), uint8
size = (150, 150)
matrix = wk.affine_matrix(angle=20.0, scale=2.2, center=(19.5, 19.5), translation=(50.0, 50.0))
rows, columns = torch.meshgrid(torch.arange(150), torch.arange(150), indexing="ij")
checks = torch.where((rows // 10 + columns // 10) % 2 == 0, 205, 235).to(torch.uint8)

interpolations = ("nearest", "bilinear", "bicubic", "lanczos4")
borders = ("constant", "replicate", "reflect", "reflect_101", "wrap", "transparent")
figure, panels = plt.subplots(4, 6, figsize=(10.6, 7.4), layout="constrained")
for line, interpolation in zip(panels, interpolations, strict=True):
    for axes, border in zip(line, borders, strict=True):
        background = checks.expand(3, *size) if border == "transparent" else None
        warped = wk.warp_affine(
            piece,
            matrix,
            size=size,
            interpolation=interpolation,
            border=border,
            background=background,
        )
        axes.imshow(warped.permute(1, 2, 0).numpy(), interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        axes.set_title(border if interpolation == "nearest" else "")
    line[0].set_ylabel(interpolation)
