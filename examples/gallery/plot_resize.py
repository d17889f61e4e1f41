"""
Which resize
============

Libraries shrink the same picture differently. `attacks.scaling_attack` has changed the pixels of
the left picture that `cv2.resize` reads, visible as dots: cv2's default resize returns a flower.
`INTER_AREA` and Pillow average all pixels that a small pixel covers, so their results show the
pagoda, with a pale trace of the flower.
"""

import cv2
import matplotlib.pyplot as plt
import torch
from PIL import Image
from sklearn.datasets import load_sample_image

import warpkit as wk

pagoda, flower = (
    wk.resize(torch.from_numpy(load_sample_image(name).copy()).permute(2, 0, 1), (256, 384)) / 255
    for name in ("china.jpg", "flower.jpg")
)
small = (64, 96)
hidden = wk.resize((flower * 255).byte(), small) / 255
version = "opencv5" if cv2.__version__.startswith("5") else "opencv4"
made = wk.attacks.scaling_attack(hidden, pagoda, small, steps=150, arithmetic=version)

pixels = (made.image * 255).round().byte().permute(1, 2, 0).contiguous().numpy()
views = {
    "the picture": pixels,
    "cv2.resize": cv2.resize(pixels, small[::-1]),
    "cv2, INTER_AREA": cv2.resize(pixels, small[::-1], interpolation=cv2.INTER_AREA),
    "Pillow, BILINEAR": Image.fromarray(pixels).resize(small[::-1], Image.Resampling.BILINEAR),
}
figure, panels = plt.subplots(1, 4, figsize=(10.6, 2.2), layout="constrained")
for axes, (name, view) in zip(panels, views.items(), strict=True):
    axes.imshow(view, interpolation="nearest")
    axes.set_title(name)
    axes.set_axis_off()
