"""
Lay one image on another
========================

`wk.align` finds the matrix that maps a moving image onto a fixed one. Here they differ by a
rotation of 130 degrees, by scale and by brightness. The moving image is red, the fixed one is
green and blue; the overlay is grey where both agree.
"""

import matplotlib.pyplot as plt
import torch
from PIL import Image
from sklearn.datasets import load_sample_image

import warpkit as wk

photo = torch.from_numpy(load_sample_image("china.jpg").copy()).permute(2, 0, 1) / 255
moving = wk.resize(photo, (192, 288)).mean(0, keepdim=True)  # (1, H, W)
center = wk.image_center(moving.shape[-2:])
hidden = wk.affine_matrix(angle=130.0, scale=0.85, translation=(12.0, -6.0), center=center)
fixed = 0.7 * wk.warp_affine(moving, hidden, interpolation="lanczos4") + 0.1

found = wk.align(moving, fixed, model="similarity", init="search")
corners = torch.tensor([[0.0, 0.0], [287.0, 0.0], [287.0, 191.0], [0.0, 191.0]])
apart = wk.transform_points(found.matrix, corners) - wk.transform_points(hidden, corners)
print(f"correlation {found.score:.4f}, corners {apart.norm(dim=-1).max():.3f} pixels off")


def overlay(first, second):
    """Red and cyan, each between its own darkest and brightest value."""
    first, second = ((x - x.min()) / (x.max() - x.min()) for x in (first, second))
    return torch.cat((first, second, second)).permute(1, 2, 0)


figure, (before, after) = plt.subplots(1, 2, figsize=(9, 3.3), layout="constrained")
before.imshow(overlay(moving, fixed).numpy())
after.imshow(overlay(wk.warp_affine(moving, found.matrix), fixed).numpy())
before.set_title("before")
after.set_title("after align")
for axes in (before, after):
    axes.set_axis_off()

# %%
# Gradient descent in slow motion
# -------------------------------
# `align` needs a few steps of second order. Here Adam minimises a plain difference with the
# gradients to the angle and the shift, which takes many small steps.

target = wk.affine_matrix(angle=20.0, translation=(14.0, -10.0), center=center)
goal = wk.warp_affine(moving, target, border="replicate")
angle = torch.zeros((), requires_grad=True)
shift = torch.zeros(2, requires_grad=True)
optimizer = torch.optim.Adam([{"params": angle, "lr": 0.6}, {"params": shift, "lr": 0.6}])
frames = []
for step in range(60):
    matrix = wk.affine_matrix(angle=angle, translation=shift, center=center)
    moved = wk.warp_affine(moving, matrix, border="replicate")
    if step % 2 == 0:
        view = overlay(moved.detach(), goal)
        frames.append(Image.fromarray((view * 255).byte().numpy()))
    loss = (moved - goal).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"found {angle.item():.1f} degrees, ({shift[0].item():.1f}, {shift[1].item():.1f}) pixels")
frames[0].save("descent.webp", save_all=True, append_images=frames[1:], duration=90, loop=0)
