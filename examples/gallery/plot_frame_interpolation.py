"""
Frames between two photographs
==============================

The flow between two frames is known. The frames between them are made by splatting pixels along
the flow; where pixels collide, the nearer object wins (`mode="softmax"`).
"""

import matplotlib.pyplot as plt
import torch
from PIL import Image
from sklearn.datasets import load_sample_image

import warpkit as wk
from warpkit import flow

size = (160, 240)
behind, flower = (
    wk.resize(torch.from_numpy(load_sample_image(name).copy()).permute(2, 0, 1) / 255, size)
    for name in ("china.jpg", "flower.jpg")
)
place = torch.arange(80) - 39.5
disc = (38 - torch.hypot(place[:, None], place)).clamp(0, 1)[None]
start, end = (wk.affine_matrix(translation=move) for move in ((10.0, 20.0), (140.0, 60.0)))


def frame(matrix):
    """The middle of the flower over the background, and its mask (1, H, W)."""
    view = wk.paste_patches(behind, flower[:, 40:120, 80:160], matrix[None], None, mask=disc)
    return view, (wk.warp_affine(disc, matrix, size=size) > 0.5).float()


(first, near), (last, near_last) = frame(start), frame(end)
path = flow.from_matrix(wk.compose(wk.invert(start), end), size, inverse=True)
forward = path * near[0, ..., None]  # only the flower moves
backward = -path * near_last[0, ..., None]


def between(time):
    """Both frames splatted to `time`; pixels that neither reaches get their mean."""
    total = weight = 0.0
    for view, motion, nearness, share in (
        (first, time * forward, near, 1 - time),
        (last, (1 - time) * backward, near_last, time),
    ):
        carried = flow.splat(view, motion, mode="softmax", weights=nearness, temperature=0.05)
        seen = share * (carried.weight > 0.3)
        total, weight = total + seen * carried.image, weight + seen
    mean = (1 - time) * first + time * last
    return torch.where(weight > 0, total / weight.clamp(min=1e-6), mean)


figure, panels = plt.subplots(1, 3, figsize=(10.6, 2.8), layout="constrained")
halfway = {"their mean": (first + last) / 2, "splatted": between(0.5)}
for axes, (name, view) in zip(panels, {"the first frame": first, **halfway}.items(), strict=True):
    axes.imshow(view.clamp(0, 1).permute(1, 2, 0).numpy())
    axes.set_title(name)
    axes.set_axis_off()

# %%
# Twenty-five frames from two:

views = [between(step / 24).clamp(0, 1).permute(1, 2, 0) for step in range(25)]
frames = [Image.fromarray((view * 255).byte().numpy()) for view in views]
frames += frames[::-1]
frames[0].save("frames.webp", save_all=True, append_images=frames[1:], duration=60, loop=0)
