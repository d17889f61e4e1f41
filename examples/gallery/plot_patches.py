"""
Objects in an image
===================

`transform_patches` rotates the contents of four boxes, each about its own centre, in one call.
`paste_patches` pastes one patch in four places, and its gradient is the sum over all four.
"""

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from matplotlib.patches import Rectangle
from PIL import Image
from sklearn.datasets import load_sample_image

import warpkit as wk

photo = torch.from_numpy(load_sample_image("china.jpg").copy()).permute(2, 0, 1) / 255
photo = wk.resize(photo, (256, 384))
boxes = torch.tensor(
    [[40.0, 60, 140, 160], [250.0, 70, 350, 170], [150.0, 140, 230, 220], [10.0, 190, 70, 250]]
)
angles = torch.tensor([35.0, 180.0, -60.0, 90.0])


def disc(side):
    """A round mask (1, side, side) with a soft edge."""
    place = torch.arange(side) - (side - 1) / 2
    return (side / 2 - torch.hypot(place[:, None], place)).div(2).clamp(0, 1)[None]


centers = (boxes[:, 2:] - boxes[:, :2] - 1) / 2  # in each box's own pixels
matrices = wk.rotation_matrix(centers, angles)
turned = wk.transform_patches(photo, boxes, matrices, None, mask=disc(96))

figure, panels = plt.subplots(1, 2, figsize=(10.6, 3.8), layout="constrained")
for axes, view, name in zip(panels, (photo, turned), ("four boxes", "turned"), strict=True):
    axes.imshow(view.permute(1, 2, 0).clamp(0, 1).numpy())
    axes.set_title(name)
    axes.set_axis_off()
for x1, y1, x2, y2 in (boxes - 0.5).tolist():  # imshow puts pixel centres at whole numbers
    panels[0].add_patch(Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False, color="yellow", lw=2))

# %%
# Optimise a patch
# ----------------
# One patch is optimised through all four places to maximise the response of a blob detector. The
# animation shows the steps.

place = torch.arange(-4.0, 5)
square = place[:, None] ** 2 + place**2
blob = (1 - square / 8) * torch.exp(-square / 8)
blob = (blob - blob.mean())[None, None] / blob.abs().sum()

side = 32
onto = wk.box_to_matrix(boxes, (side, side), angle=angles)
torch.manual_seed(0)
logits = (0.1 * torch.randn(3, side, side)).requires_grad_()
optimizer = torch.optim.Adam([logits], lr=0.2)
frames = []
for step in range(60):
    view = wk.paste_patches(photo, logits.sigmoid(), onto, None, mask=disc(side))
    if step % 2 == 0:
        frames.append(Image.fromarray((view.detach().permute(1, 2, 0) * 255).byte().numpy()))
    answer = F.conv2d(view[:, None], blob)
    optimizer.zero_grad()
    (-answer.square().mean()).backward()
    optimizer.step()
frames[0].save("patch.webp", save_all=True, append_images=frames[1:], duration=100, loop=0)
