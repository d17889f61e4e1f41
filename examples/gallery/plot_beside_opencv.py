"""
Compared with OpenCV
====================

Three libraries rotate one 8-bit photograph, each called as its documentation says. Red marks,
three pixels wide, are pixels that differ from the installed OpenCV's. torchvision and
`grid_sample` interpolate floats and round the result; OpenCV 4 rounds positions to 1/32 of a
pixel. `arithmetic=` selects the pixels of either OpenCV version.
"""

import cv2
import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from sklearn.datasets import load_sample_image
from torchvision.transforms.v2 import functional as TV

import warpkit as wk

array = load_sample_image("china.jpg").copy()  # (427, 640, 3), uint8
image = torch.from_numpy(array).permute(2, 0, 1)
size = (427, 640)
matrix = wk.rotation_matrix(wk.image_center(size), 30.0, 1.1)  # cv2's matrix


def by_opencv():
    return torch.from_numpy(cv2.warpAffine(array, matrix.numpy(), size[::-1])).permute(2, 0, 1)


def by_warpkit(version):
    return lambda: wk.warp_affine(image, matrix, arithmetic=version)


def by_torchvision():
    bilinear = TV.InterpolationMode.BILINEAR
    return TV.affine(image, -30.0, [0, 0], 1.1, [0.0, 0.0], interpolation=bilinear)


def by_grid_sample():
    theta = wk.to_theta(matrix, size, size)[None]
    grid = F.affine_grid(theta, [1, 3, *size], align_corners=False)
    floats = F.grid_sample(image[None].float(), grid, align_corners=False)
    return floats[0].round().byte()


own = by_opencv()
ways = {
    'warpkit, "opencv5"': by_warpkit("opencv5"),
    'warpkit, "opencv4"': by_warpkit("opencv4"),
    "torchvision": by_torchvision,
    "grid_sample": by_grid_sample,
}
print(f"OpenCV {cv2.__version__}")
figure, panels = plt.subplots(2, 2, figsize=(10.6, 8.0), layout="constrained")
for axes, (name, way) in zip(panels.flat, ways.items(), strict=True):
    off = (way().int() - own.int()).abs().amax(0)
    pale = (0.8 + 0.2 * own.double().mean(0) / 255).expand(3, -1, -1).clone()
    dots = F.max_pool2d((off > 0).double()[None], 3, stride=1, padding=1)[0]
    pale = torch.where(dots > 0, torch.tensor([0.85, 0.0, 0.0]).double()[:, None, None], pale)
    axes.imshow(pale.permute(1, 2, 0).numpy())
    axes.set_title(name)
    count = int((off > 0).sum())
    says = f"{count:,} pixels differ, by up to {off.max()}" if count else "no pixel differs"
    axes.set(xticks=[], yticks=[], xlabel=says)
    print(f"{name}: {says}")
