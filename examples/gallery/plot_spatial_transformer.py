"""
Spatial transformers
====================

`nn.SpatialTransformer` learns where to sample. It is trained only with class labels, and learns to
turn the digits upright for the classifier behind it.
"""

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

import warpkit as wk
from warpkit import attacks
from warpkit.nn import SpatialTransformer

data = load_digits()
images = torch.from_numpy(data.images)[:, None].float() / 16
images = wk.resize(images, (20, 20), antialias=False)
labels = torch.from_numpy(data.target)
turns = attacks.AffineDistribution(angle=(-60, 60), scale=(0.7, 1.1))

torch.manual_seed(0)


def features(width):
    """A small network, (B, 1, 20, 20) -> (B, width * 25)."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, width, 5, stride=2, padding=2), torch.nn.ReLU(),
        torch.nn.Conv2d(width, width, 3, stride=2, padding=1), torch.nn.ReLU(),
        torch.nn.Flatten(),
    )  # fmt: skip


look = SpatialTransformer(
    torch.nn.Sequential(features(8), torch.nn.Linear(200, 32), torch.nn.Tanh()),
    (20, 20), transform="similarity",
)  # fmt: skip
model = torch.nn.Sequential(look, features(8), torch.nn.Linear(200, 10))
model(images[:2])  # the head infers its width from the first batch
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for _ in range(400):
    rows = torch.randint(len(images), (64,))
    views = wk.warp_affine(images[rows], turns.sample(64, size=(20, 20)))
    loss = F.cross_entropy(model(views), labels[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

rows = torch.stack([(labels == n).nonzero()[1, 0] for n in range(10)])
views = wk.warp_affine(images[rows], turns.sample(10, size=(20, 20)))
with torch.no_grad():
    upright = look(views)
figure, panels = plt.subplots(2, 10, figsize=(10.6, 2.5), layout="constrained")
for line, digits, name in zip(panels, (views, upright), ("seen", "shown"), strict=True):
    for axes, digit in zip(line, digits, strict=True):
        axes.imshow(digit[0].numpy(), cmap="gray", vmin=0, vmax=1)
        axes.set(xticks=[], yticks=[])
    line[0].set_ylabel(name)
