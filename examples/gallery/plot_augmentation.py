"""
Five transforms, sampled once
=============================

Five geometric transforms in a row sample a training image five times. Each blurs it, and pixels
that leave the frame in between are lost. `transforms.Fused` composes the five maps and samples
once, with the same random draws.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_sample_image
from torchvision.transforms import v2

import warpkit as wk
from warpkit import transforms

photo = torch.from_numpy(load_sample_image("china.jpg").copy()).permute(2, 0, 1)
photo = wk.resize(photo, (240, 360))
bilinear = v2.InterpolationMode.BILINEAR


def five(library):
    """The same five transforms from either library."""
    return [
        library.RandomRotation(25, interpolation=bilinear),
        library.RandomAffine(10, scale=(0.9, 1.1), shear=8, interpolation=bilinear),
        library.RandomPerspective(0.3, p=1.0),
        library.RandomHorizontalFlip(1.0),
        library.RandomResizedCrop((160, 160), scale=(0.5, 0.8)),
    ]


views = {}
for name, transform in (
    ("torchvision: sampled five times", v2.Compose(five(v2))),
    ("Fused: sampled once", transforms.Fused(five(transforms))),
):
    torch.manual_seed(3)
    views[name] = transform(photo)

figure, panels = plt.subplots(2, 2, figsize=(7.2, 7.4), layout="constrained")
for column, (name, view) in zip(panels.T, views.items(), strict=True):
    for axes, part in zip(column, (view, view[:, 70:120, 105:155]), strict=True):
        axes.imshow(part.permute(1, 2, 0).numpy(), interpolation="nearest")
        axes.set_axis_off()
    column[0].set_title(name)
