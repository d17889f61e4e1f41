"""
A perturbation that survives rotations
======================================

A small network classifies digits. A perturbation of at most 0.18 fools it, but not under every
rotation. A perturbation that was optimised under random rotations fools it in far more views.
"""

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

import warpkit as wk
from warpkit import attacks

data = load_digits()
images = torch.from_numpy(data.images)[:, None].float() / 16  # (N, 1, 8, 8)
labels = torch.from_numpy(data.target)
turns = attacks.AffineDistribution(angle=(-20, 20), translation=(-1, 1))

torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(1, 24, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(),
    torch.nn.Linear(24 * 64, 10),
)  # fmt: skip
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for _ in range(150):
    rows = torch.randint(len(images), (128,))
    views = wk.warp_affine(images[rows], turns.sample(128, size=(8, 8)))
    loss = F.cross_entropy(net(views), labels[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

digit, label = images[11:12], labels[11]


def objective(views):
    """The network's log probability of the true digit, over all views."""
    return -F.cross_entropy(net(views), label.expand(len(views)))


generator = torch.Generator().manual_seed(1)
options = {"epsilon": 0.18, "steps": 60, "generator": generator}
plain = attacks.optimize_perturbation(objective, digit, **options)
robust = attacks.optimize_perturbation(objective, digit, turns, samples=16, **options)

matrices = turns.sample(1000, size=(8, 8), generator=generator)
figure, panels = plt.subplots(1, 3, figsize=(8, 3.2), layout="constrained")
names = ("the digit", "perturbed", "perturbed under rotations")
for axes, name, image in zip(panels, names, (digit, plain.image, robust.image), strict=True):
    with torch.no_grad():
        fooled = (net(wk.warp_affine(image, matrices)).argmax(1) != label).double().mean()
    axes.imshow(image[0, 0].numpy(), cmap="gray", vmin=0, vmax=1)
    axes.set_title(name)
    axes.set(xticks=[], yticks=[], xlabel=f"misread in {fooled:.0%} of 1,000 views")
