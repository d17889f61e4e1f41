"""
Through a lens
==============

`camera.distort` adds the distortion of a wide-angle lens, `camera.undistort` removes it. Both are
differentiable in the camera matrix and the coefficients: here they are recovered from the
distorted picture.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_sample_image

import warpkit as wk
from warpkit import camera

photo = torch.from_numpy(load_sample_image("china.jpg").copy()).permute(2, 0, 1) / 255
photo = wk.resize(photo, (160, 240))
view = torch.tensor([[150.0, 0, 119.5], [0, 150, 79.5], [0, 0, 1]])
lens = torch.tensor([-0.32, 0.08, 0.0, 0.0])  # k1, k2, p1, p2
bent = camera.distort(photo, view, lens)

guess = torch.zeros(2, requires_grad=True)
optimizer = torch.optim.Adam([guess], lr=0.02)
for _ in range(200):
    seen = camera.distort(photo, view, torch.cat((guess, torch.zeros(2))))
    loss = (seen - bent).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"k1 {guess[0].item():.3f}, k2 {guess[1].item():.3f}")

found = torch.cat((guess.detach(), torch.zeros(2)))
views = {"ideal": photo, "bent": bent, "undistorted": camera.undistort(bent, view, found)}
figure, panels = plt.subplots(1, 3, figsize=(10.6, 2.8), layout="constrained")
for axes, (name, image) in zip(panels, views.items(), strict=True):
    axes.imshow(image.clamp(0, 1).permute(1, 2, 0).numpy())
    axes.set_title(name)
    axes.set_axis_off()
