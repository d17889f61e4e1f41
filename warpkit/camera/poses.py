"""Poses: maps from one camera's coordinates to another's."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from warpkit.camera.views import warn_if_no_rotation
from warpkit.core import checks
from warpkit.core.sharding import batched
from warpkit.geometry.arguments import floats
from warpkit.types import MatrixLike, NumbersLike


@batched(rotation=2, translation=1)
def pose(rotation: MatrixLike, translation: NumbersLike) -> Tensor:
    """The matrix of a pose, X' = rotation X + translation, from one camera to another.

    rotation (..., 3, 3), of `camera.rotation` for instance; translation (..., 3), in the units of
    the depths: where the other camera sees the first one's centre. Batches broadcast. Returns
    (..., 4, 4). Poses compose by @ and go back by torch.linalg.inv: of two world-to-camera matrices
    the pose is other @ inv(own). Gradients: all orders, to both. A matrix that is not a rotation
    causes a warning.

    >>> pose([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], [0.5, 0.0, 2.0])
    tensor([[ 0.0000, -1.0000,  0.0000,  0.5000],
            [ 1.0000,  0.0000,  0.0000,  0.0000],
            [ 0.0000,  0.0000,  1.0000,  2.0000],
            [ 0.0000,  0.0000,  0.0000,  1.0000]])
    """
    name = "pose"
    device, dtype = checks.result_kind(rotation, translation)
    turn = floats(name, "rotation", rotation, device)
    if tuple(turn.shape[-2:]) != (3, 3):
        wanted = "of shape (..., 3, 3): camera.rotation makes it from a vector or angles"
        checks.fail(name, "rotation", wanted, checks.shape_of(turn))
    shift = floats(name, "translation", translation, device)
    checks.check_device(name, "translation", shift, turn.device, "`rotation`")
    checks.check_last(name, "translation", shift, 3)
    warn_if_no_rotation(name, "`rotation`", turn.detach(), SHEARED)
    shapes = {"rotation": turn.shape[:-2], "translation": shift.shape[:-1]}
    batch = checks.broadcast_batch(name, **shapes)
    columns = turn.to(dtype).expand(*batch, 3, 3), shift.to(dtype).expand(*batch, 3)[..., None]
    last = torch.eye(4, dtype=dtype, device=turn.device)[3:].expand(*batch, 1, 4)
    return torch.cat((torch.cat(columns, -1), last), -2)


SHEARED = "It is taken as it is, and shears or mirrors the scene"


def as_pose(
    name: str, value: Any, device: torch.device | None, argument: str = "pose", views: str = ""
) -> Tensor:
    """Poses (..., 3, 4), validated, of an argument (..., 3, 4) or (..., 4, 4).

    views: "V, " if the last dimension of the batch is that of the views.
    """
    pose = floats(name, argument, value, device)
    fits = tuple(pose.shape[-2:]) in ((3, 4), (4, 4)) and pose.ndim >= (3 if views else 2)
    if not fits:
        wanted = f"of shape (..., {views}3, 4) or (..., {views}4, 4)"
        checks.fail(name, argument, wanted, checks.shape_of(pose))
    if pose.shape[-2] == 4:
        last = pose.detach()[..., 3, :]
        bad = (last != last.new_tensor((0, 0, 0, 1))).any(-1)
        checks.check_values(name, argument, bad, "a matrix with the last row (0, 0, 0, 1)", last)
        pose = pose[..., :3, :]
    warn_if_no_rotation(name, f"the rotation of `{argument}`", pose.detach()[..., :3], SHEARED)
    return pose
