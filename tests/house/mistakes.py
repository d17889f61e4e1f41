"""Calls that a type checker rejects, one per line, and calls that it accepts.

`pyright` checks this file with the package. Each mistake is marked with the rule that rejects it,
and an unnecessary mark is an error, so pyright fails if it accepts one of these mistakes.
`test_types.py` makes the calls, and each mistake raises.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=error

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

import warpkit as wk
import warpkit.opencv as cv2
from warpkit import attacks, camera, flow, indexing, nn, transforms, validation

image, images, flows = torch.zeros(1, 8, 8), torch.zeros(1, 1, 8, 8), torch.zeros(8, 8, 2)
rows, picture = [[1, 0, 0.5], [0, 1, 0]], np.zeros((8, 8), np.uint8)
eye, box, size = np.eye(3), [[0, 0, 4, 4]], (4, 4)
corners = [(0, 0), (7, 0), (7, 7)]


def mean(shown: torch.Tensor) -> torch.Tensor:
    """An objective."""
    return shown.mean()


MISTAKES: list[Callable[[], Any]] = [
    lambda: wk.warp_affine(image, "nonsense"),  # pyright: ignore[reportArgumentType]
    lambda: wk.warp_affine(image, 3.0),  # pyright: ignore[reportArgumentType]
    lambda: wk.warp_affine(image, [1, 0, 0]),  # pyright: ignore[reportArgumentType]
    lambda: wk.warp_affine(picture, rows),  # pyright: ignore[reportArgumentType]
    lambda: wk.warp_affine(image, rows, border="mirrored"),  # pyright: ignore[reportArgumentType]
    lambda: wk.warp_affine(image, rows, border=("wrap", "edge")),  # pyright: ignore[reportArgumentType]
    lambda: wk.warp_affine(image, rows, border_value="0"),  # pyright: ignore[reportArgumentType]
    lambda: wk.warp_affine(image, rows, interpolation="linear"),  # pyright: ignore[reportArgumentType]
    lambda: wk.warp_affine(image, rows, arithmetic="pillow"),  # pyright: ignore[reportArgumentType]
    lambda: wk.warp_affine(image, rows, backend="gpu"),  # pyright: ignore[reportArgumentType]
    lambda: wk.warp_affine(image, rows, image_gradient="ste"),  # pyright: ignore[reportArgumentType]
    lambda: wk.warp_affine(image, rows, (4, 4)),  # pyright: ignore[reportCallIssue]
    lambda: wk.warp_affine(image, rows, mode="nearest"),  # pyright: ignore[reportCallIssue]
    lambda: wk.warp_perspective(image, eye, interpolation="area"),  # pyright: ignore[reportArgumentType]
    lambda: wk.remap(image, "points"),  # pyright: ignore[reportArgumentType]
    lambda: wk.remap(image, flows, border="reflection"),  # pyright: ignore[reportArgumentType]
    lambda: wk.sample_pixels(image, [[1, 1]], interpolation="cubic"),  # pyright: ignore[reportArgumentType]
    lambda: wk.resize(image, size, interpolation="lanczos3"),  # pyright: ignore[reportArgumentType]
    lambda: wk.resize(image, size, arithmetic="opencv"),  # pyright: ignore[reportArgumentType]
    lambda: wk.resize(image, size, backend="cuda"),  # pyright: ignore[reportArgumentType]
    lambda: wk.resize(image, "4"),  # pyright: ignore[reportArgumentType]
    lambda: wk.letterbox(image, size, place="middle"),  # pyright: ignore[reportArgumentType]
    lambda: wk.letterbox(image, size, rounding="up"),  # pyright: ignore[reportArgumentType]
    lambda: wk.rotation_matrix("center", 30),  # pyright: ignore[reportArgumentType]
    lambda: wk.rotation_matrix((0, 0), "30"),  # pyright: ignore[reportArgumentType]
    lambda: wk.affine_from_points("abc", corners),  # pyright: ignore[reportArgumentType]
    lambda: wk.invert(None),  # pyright: ignore[reportArgumentType]
    lambda: wk.compose(rows, "rows"),  # pyright: ignore[reportArgumentType]
    lambda: wk.transform_points(rows, "points"),  # pyright: ignore[reportArgumentType]
    lambda: wk.align(images, images, model="rigid"),  # pyright: ignore[reportArgumentType]
    lambda: wk.align(images, images, loss="l2"),  # pyright: ignore[reportArgumentType]
    lambda: wk.align(images, images, init="find"),  # pyright: ignore[reportArgumentType]
    lambda: wk.crop_patches(images, "boxes", None, size),  # pyright: ignore[reportArgumentType]
    lambda: wk.crop_patches(images, box, "first", size),  # pyright: ignore[reportArgumentType]
    lambda: wk.transform_patches(images, box, [rows], None, space="box"),  # pyright: ignore[reportArgumentType]
    lambda: wk.transform_patches(images, box, [rows], None, overlap="first"),  # pyright: ignore[reportArgumentType]
    lambda: wk.paste_patches(images, images, [rows], None, opacity="half"),  # pyright: ignore[reportArgumentType]
    lambda: wk.warp_flow(image, 1.0),  # pyright: ignore[reportArgumentType]
    lambda: indexing.linear_lookup([1.0, 2.0], 0.5, border="constant"),  # pyright: ignore[reportArgumentType]
    lambda: indexing.linear_lookup("abc", 0.5),  # pyright: ignore[reportArgumentType]
    lambda: flow.splat(image, flows, mode="mean"),  # pyright: ignore[reportArgumentType]
    lambda: flow.compose(flows, "flow"),  # pyright: ignore[reportArgumentType]
    lambda: camera.undistort(image, eye, [0.1], model="pinhole"),  # pyright: ignore[reportArgumentType]
    lambda: camera.undistort(image, "camera", [0.1, 0, 0, 0]),  # pyright: ignore[reportArgumentType]
    lambda: nn.Warp(interpolation="linear"),  # pyright: ignore[reportArgumentType]
    lambda: nn.Warp(mode="bilinear"),  # pyright: ignore[reportCallIssue]
    lambda: nn.SpatialTransformer(torch.nn.Flatten(), size, transform="rigid"),  # pyright: ignore[reportArgumentType]
    lambda: transforms.RandomAffine(10, interpolation="linear"),  # pyright: ignore[reportArgumentType]
    lambda: transforms.Resize(4, arithmetic="cv2"),  # pyright: ignore[reportArgumentType]
    lambda: attacks.expectation(mean, image, [rows], border="edge"),  # pyright: ignore[reportArgumentType]
    lambda: attacks.expectation(mean, image, [rows], photometric="dark"),  # pyright: ignore[reportArgumentType]
    lambda: attacks.optimize_perturbation(mean, image, epsilon=0.1, norm="l1"),  # pyright: ignore[reportArgumentType]
    lambda: attacks.jpeg(75, subsampling="4:1:1"),  # pyright: ignore[reportArgumentType]
    lambda: validation.identify(np.asarray, takes="numpy"),  # pyright: ignore[reportArgumentType]
    lambda: validation.compare_with_opencv(image, rows, arithmetic="cv2"),  # pyright: ignore[reportArgumentType]
    lambda: cv2.warpAffine(picture, "M", size),  # pyright: ignore[reportArgumentType]
    lambda: cv2.warpAffine(picture, eye[:2], size, arithmetic="opencv"),  # pyright: ignore[reportArgumentType]
    lambda: cv2.resize(picture, size, arithmetic="pillow"),  # pyright: ignore[reportArgumentType]
]

angle = torch.tensor(0.3)
CALLS: list[Callable[[], Any]] = [
    lambda: wk.warp_affine(image, rows),
    lambda: wk.warp_affine(image, np.eye(2, 3)),
    lambda: wk.warp_affine(image, torch.eye(3), border="wrap", border_value=[0.5]),
    lambda: wk.warp_affine(image, [torch.eye(2, 3), torch.eye(2, 3)]),
    lambda: wk.warp_affine(image, [[angle.cos(), -angle.sin(), 0], [angle.sin(), angle.cos(), 0]]),
    lambda: wk.warp_affine(image, rows, border=("wrap", "reflect_101")),
    lambda: wk.warp_affine(image, rows, border=["zeros", "replicate"]),
    partial(wk.warp_affine, image, rows, interpolation="bicubic", arithmetic="opencv5"),
    lambda: wk.remap(image, [[[0.5, 0.0], [2.0, 1.0]]]),
    lambda: wk.remap(image, wk.pixel_grid((8, 8))),
    lambda: wk.sample_pixels(image, [(1, 2)], border_value=np.float32(1)),
    lambda: wk.rotation_matrix((1, 2), angle),
    lambda: wk.rotation_matrix((angle, 2.0), np.float64(3), [1, 2]),
    lambda: wk.affine_matrix(shear=(1, 2), translation=torch.zeros(2)),
    lambda: wk.affine_from_points(np.array(corners), np.array(corners)),
    lambda: wk.affine_from_points(corners, corners, weights=[1, 2, 3]),
    lambda: wk.transform_points(rows, (1, 2)),
    lambda: wk.box_to_matrix((4.0, 2.0, 8.0, 4.0), (2, 4)),
    lambda: wk.crop_patches(images, box, [0], size),
    lambda: wk.crop_patches([image, image], np.array(box), torch.tensor([1]), size),
    lambda: wk.paste_patches(images, image, [rows], None, opacity=[0.5]),
    lambda: wk.resize(image, size, interpolation="lanczos", arithmetic="pillow"),
    lambda: wk.resize(image, size, box=(0, 0, 4, 4)),
    lambda: indexing.linear_lookup([1.0, 2.0], [0.5, [0.25]][0]),
    lambda: indexing.assign([1.0, 2.0, 3.0], 1, 5.0),
    lambda: flow.from_matrix(rows, size),
    lambda: camera.undistort(image, [[9, 0, 4], [0, 9, 4], [0, 0, 1]], [0.1, 0, 0, 0]),
    lambda: nn.Warp(size=(4, 4), interpolation="nearest"),
    lambda: attacks.expectation(mean, image, [rows], border="replicate", chunk=1),
    lambda: attacks.expectation(mean, image, attacks.AffineDistribution(angle=(-1, 1)), samples=2),
    lambda: transforms.RandomAffine(10, interpolation="bilinear", fill=[1.0]),
    lambda: cv2.warpAffine(picture, np.eye(2, 3), (4, 4), borderValue=(1, 2, 3)),
    lambda: cv2.flip(image[0], 1).requires_grad,
    lambda: cv2.warpPerspective(picture, [[1, 0, 0], [0, 1, 0], [0, 0, 1]], (4, 4)).strides,
]
