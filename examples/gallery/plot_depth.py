"""
One picture from another place, by its depth
============================================

A room of a floor, a wall and two boards. The depth of every pixel and the pose of a second camera
say where that camera shows the pixel: `camera.warp_depth` samples its picture there. What a board
hides from it is marked by the second camera's own depth, and what lies outside its picture by
`valid`. The last picture pushes the first one along the same points instead, with a z-buffer.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_sample_image

import warpkit as wk
from warpkit import camera, flow

size = (160, 240)
matrix = torch.tensor([[150.0, 0, 119.5], [0, 150, 79.5], [0, 0, 1]])
photo = torch.from_numpy(load_sample_image("china.jpg").copy()).permute(2, 0, 1) / 255
rows, columns = torch.meshgrid(*(torch.arange(0, 9, 1 / 64) for _ in range(2)), indexing="ij")
checks = ((rows.floor() + columns.floor()) % 2 * 0.5 + 0.3).expand(3, -1, -1)
tint = torch.tensor([[0.9, 0.5, 0.2], [0.2, 0.5, 0.9]])[:, :, None, None]

# each surface: its texture, a corner, and the directions of its sides in metres
surfaces = [
    (photo, (-6.0, -4, 9), (12.0, 0, 0), (0.0, 5.4, 0)),
    (checks, (-6.0, 1.4, 1), (12.0, 0, 0), (0.0, 0, 8)),
    (tint[0].expand(3, 64, 64), (-1.6, -0.6, 4), (1.1, 0, 0), (0.0, 2, 0)),
    (tint[1].expand(3, 64, 64), (0.5, -0.9, 3), (0.8, 0, 0.3), (0.0, 2.3, 0)),
]


def seen_from(pose):
    """A picture (3, h, w) and its depth (1, h, w), for a pose from the world to the camera."""
    picture, depth = torch.zeros(3, *size), torch.full((1, *size), torch.inf)
    y, x = torch.meshgrid(*(torch.arange(float(n)) for n in size), indexing="ij")
    rays = torch.stack((x, y, torch.ones_like(x)), -1) @ torch.linalg.inv(matrix).T
    for texture, corner, across, down in surfaces:
        turned = torch.tensor((across, down, corner)) @ pose[:3, :3].T
        turned[2] += pose[:3, 3]
        found = torch.linalg.solve(turned.T, rays[..., None])[..., 0]  # (u, v, 1) / z
        z = (1 / found[..., 2])[None]
        u, v = found[..., 0] * z[0], found[..., 1] * z[0]
        here = (u >= 0) & (u <= 1) & (v >= 0) & (v <= 1) & (z > 0) & (z < depth)
        height, width = texture.shape[-2:]
        painted = wk.remap(
            texture, torch.stack((u * (width - 1), v * (height - 1)), -1), border="replicate"
        )
        picture, depth = torch.where(here, painted, picture), torch.where(here, z, depth)
    return picture, depth


own = torch.eye(4)
second = camera.pose(camera.rotation(yaw=4.0), torch.tensor([-0.7, 0.0, 0.1]))
image, depth = seen_from(own)
other, other_depth = seen_from(second)
seen = camera.warp_depth(other, depth, matrix, second, other_depth=other_depth, tolerance=0.02)
there = camera.depth_points(depth, matrix, second)
pushed = flow.splat(image, flow.from_points(there.points), mode="front", depth=there.depth)

red, blue = (torch.tensor(c)[:, None, None] for c in ([1.0, 0.35, 0.0], [0.2, 0.2, 0.6]))
masks = torch.where(seen.occluded, red, seen.image).where(seen.valid, blue)
good = seen.valid & ~seen.occluded
error = 255 * (seen.image - image).abs().mean(0, keepdim=True)
pictures = {
    "the first camera's picture": image,
    "its depth": 1.5 / depth.expand(3, -1, -1),
    "the second camera's": other,
    f"the second's, from the first: {error[good].mean():.1f} levels off where seen, "
    f"{error[seen.valid & seen.occluded].mean():.0f} where hidden": seen.image,
    "hidden: orange; outside: blue": masks,
    "the first's, pushed to the second; holes: black": pushed.image,
}
figure, axes = plt.subplots(2, 3, figsize=(10, 5), layout="constrained")
for place, (text, picture) in zip(axes.flat, pictures.items(), strict=True):
    place.imshow(picture.clamp(0, 1).permute(1, 2, 0).numpy())
    place.set_xlabel(text, fontsize=7, wrap=True)
    place.set_xticks([])
    place.set_yticks([])
