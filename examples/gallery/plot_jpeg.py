"""
A JPEG file, and the gradient through it
========================================

`attacks.jpeg` gives the values of a JPEG file as tensors: those of Pillow, OpenCV and torchvision,
bit for bit. Its gradient knows what the file keeps. The middle row is the difference from the
photograph, 4 times enlarged. The last row is the gradient to the photograph of a random direction:
at a low quality the file rounds most coefficients to 0, and little of the direction remains.
"""

import io

import matplotlib.pyplot as plt
import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_sample_image

from warpkit.attacks import jpeg

photo = load_sample_image("flower.jpg")[120:280, 210:434]
image = torch.from_numpy(photo.copy()).permute(2, 0, 1)[None]
push = torch.randn(image.shape, generator=torch.Generator().manual_seed(0))
qualities = (5, 20, 50, 90)

figure, axes = plt.subplots(3, len(qualities), figsize=(10, 6), layout="constrained")
for column, quality in zip(axes.T, qualities, strict=True):
    file = io.BytesIO()
    Image.fromarray(photo).save(file, "JPEG", quality=quality)
    shown = jpeg(quality)(image)
    differ = (shown[0].permute(1, 2, 0).numpy() != np.asarray(Image.open(file))).sum()
    floats = (image / 255).requires_grad_()
    (gradient,) = torch.autograd.grad(jpeg(quality)(floats), floats, push)
    kept = gradient.norm() / push.norm()
    pictures = (
        shown / 255,
        0.5 + 4 * (shown / 255 - image / 255),
        0.5 + gradient / 6,
    )
    says = (
        f"quality {quality}: {differ} values differ from Pillow's",
        "what the file changes, x 4",
        f"gradient: {100 * kept:.0f} % of the direction",
    )
    for place, picture, text in zip(column, pictures, says, strict=True):
        place.imshow(picture[0].clamp(0, 1).permute(1, 2, 0).numpy())
        place.set_xlabel(text, fontsize=7)
        place.set_xticks([])
        place.set_yticks([])
