"""Plane sweeps: features of several views compared with one's, at depths of its pixels."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpkit.camera.arguments import Names, as_any_lens
from warpkit.camera.depth import rays_of
from warpkit.camera.poses import as_pose
from warpkit.core import checks
from warpkit.core.integers import WHOLE_NUMBERS, plain_integer
from warpkit.core.mistakes import warn_if_16_bit_camera, warn_if_relative_camera
from warpkit.core.numbers import join_or
from warpkit.core.sharding import batched
from warpkit.engine.definitions import features, lens_models, lens_rays
from warpkit.engine.definitions.depth import KINDS
from warpkit.engine.definitions.lens_models import COUNTS, Lens
from warpkit.engine.definitions.reference import compute_dtype
from warpkit.engine.definitions.sweep import MEASURES
from warpkit.engine.definitions.sweep import Sweep as Options
from warpkit.engine.operators.sweep import sweep
from warpkit.geometry.arguments import floats
from warpkit.types import Border, DepthKind, LensModel, MatrixLike, Measure, NumbersLike

SOURCES = Names("source_matrices", "source_distortions", "source_model")


class Sweep(NamedTuple):
    """The result of `plane_sweep`."""

    cost: Tensor
    """(..., groups, D, h, w)."""
    seen: Tensor
    """(..., D, h, w), int32: how many views see each point."""


class _Cameras(NamedTuple):
    """The validated cameras of a sweep, and their poses."""

    own: Lens
    """(...)."""
    others: Lens
    """(..., V)."""
    poses: Tensor
    """(..., V, 3, 4)."""


@batched(
    2, reference=3, sources=4, depths=3, camera_matrix=2, poses=3, source_matrices=3,
    distortion=1, source_distortions=2,
)  # fmt: skip
def plane_sweep(
    reference: Tensor | None,
    sources: Tensor,
    depths: NumbersLike,
    camera_matrix: MatrixLike,
    poses: MatrixLike,
    source_matrices: MatrixLike | None = None,
    *,
    distortion: NumbersLike | None = None,
    source_distortions: NumbersLike | None = None,
    model: LensModel = "brown",
    source_model: LensModel | None = None,
    kind: DepthKind = "z",
    measure: Measure = "correlation",
    groups: int = 1,
    border: Border | None = None,
) -> Sweep:
    """Compare a view's features with those that other views show at depths of its pixels.

    Args:
        reference: (..., C, h, w), the features of the view that asks, of a floating type. None,
            with depths (..., D, h, w): the variance of the sources alone.
        sources: (..., V, C, H, W), the other views' features, of the same type. 1 in the place of V
            is for all views, here and below; views as a batch with V = 1 give a cost each.
        depths: (D,), one for each plane, or (..., D, h, w), one for each pixel; (..., D, 1, 1) are
            planes of each item. What they mean, by `kind`, and which are missing: as in
            `depth_points`, as everything about cameras and lenses.
        camera_matrix: (..., 3, 3), the view's, in pixels of `reference`.
        poses: (..., V, 3, 4) or (..., V, 4, 4), from the view's coordinates to each source's.
        source_matrices: (..., V, 3, 3), in pixels of `sources`. None: all have the view's camera,
            lens and size.
        distortion: (..., n), the view's lens by `model`.
        source_distortions: (..., V, n), by `source_model` (None is `model`), given with
            `source_matrices` alone; None is no lens.
        kind: "z", "ray" or "inverse".
        measure: of the view's r and the samples s of the views that take part, for each channel,
            then the mean over the channels of each group: "correlation", the mean of r s;
            "difference", of r - s; "absolute", of |r - s|; "squared", of (r - s)^2; "variance", the
            biased variance of r and all s.
        groups: of C / groups neighbouring channels.
        border: None: the views that see the point take part, and the cost is 0 where none does.
            A name or a pair as in `warpkit.remap`: all views take part, and sample the border; 0
            where there is no place.

    Returns:
        Sweep(cost (..., groups, D, h, w), of the features' type; seen (..., D, h, w), int32). A
        view sees a point that lies in its picture, 0 <= x <= W - 1 and 0 <= y <= H - 1, up to 1e-6.
        Places are float64, and halves are computed in float32. All batches broadcast, and nothing
        of the size C x D x h x w is stored. The same bits for any number of threads.

    Gradients: all orders, forward and reverse, to all; through the view's lens up to the third.

    MVSNet's variance is measure="variance", groups=C, border="constant"; GwcNet's volume of
    disparities d is kind="inverse" with cameras of 1 and the translation (-1, 0, 0).

    >>> left, right = torch.tensor([[[1.0, 2, 3, 4]]]), torch.tensor([[[[2.0, 3, 4, 5]]]])
    >>> camera, pose = torch.eye(3), [[[1.0, 0, 0, -1], [0, 1, 0, 0], [0, 0, 1, 0]]]
    >>> plane_sweep(left, right, [0, 1], camera, pose, kind="inverse", measure="absolute")
    Sweep(cost=tensor([[[[1., 1., 1., 1.]],
    <BLANKLINE>
             [[0., 0., 0., 0.]]]]), seen=tensor([[[1, 1, 1, 1]],
    <BLANKLINE>
            [[0, 1, 1, 1]]], dtype=torch.int32))
    """
    name = "plane_sweep"
    kind = checks.check_name(name, "kind", kind, KINDS)
    measure = checks.check_name(name, "measure", measure, MEASURES)
    chosen = None if border is None else features.named_border(name, border)
    sources = features.as_features(name, "sources", sources, features.VIEWS)
    if reference is not None:
        wanted = features.PICTURE
        reference = features.as_features(name, "reference", reference, wanted, empty=True)
        features.check_alike(name, "sources", sources, "reference", reference)
    elif measure != "variance":
        wanted = f"given with measure={measure!r}: 'variance' alone needs none"
        checks.fail(name, "reference", wanted, None)
    groups = _groups(name, groups, sources.shape[-3])
    planes, size = _depths(name, depths, reference, sources.device)
    matrices = (camera_matrix, distortion, source_matrices, source_distortions)
    cameras = _cameras(name, *matrices, model, source_model, poses, sources, size)
    shapes = {
        "sources": sources.shape[:-4],
        "depths": planes.shape[:-3],
        "camera_matrix": cameras.own.fx.shape,
        "poses": cameras.poses.shape[:-3],
        "source_matrices": cameras.others.fx.shape[:-1],
        "reference": () if reference is None else reference.shape[:-3],
    }
    checks.broadcast_batch(name, **shapes)
    pinhole = cameras.own.model == "brown" and not cameras.own.k
    options = Options(kind, cameras.others.model, pinhole, size, measure, groups, chosen)
    real = compute_dtype(sources.dtype)
    cost, counts = sweep(
        options,
        sources.to(real),
        planes if planes.dtype in (torch.float32, torch.float64) else planes.double(),
        lens_models.packed(cameras.own) if pinhole else rays_of(cameras.own, size, kind),
        cameras.poses.double(),
        lens_models.packed(cameras.others),
        lens_rays.end_of(cameras.others),
        *(() if reference is None else (reference.to(real),)),
    )
    return Sweep(cost.to(sources.dtype), counts)


def _groups(name: str, groups: Any, channels: int) -> int:
    whole = isinstance(groups, WHOLE_NUMBERS) and not isinstance(groups, bool)
    if not whole or groups < 1 or channels % groups:
        wanted = f"a whole number that divides the {channels} channels"
        checks.fail(name, "groups", wanted, f"{groups!r:.60}")
    return plain_integer(groups)


def _depths(
    name: str, value: Any, reference: Tensor | None, device: torch.device
) -> tuple[Tensor, tuple[int, int]]:
    """Depths (..., D, h, w) or (..., D, 1, 1), and the size (h, w) of the view that asks."""
    depths = floats(name, "depths", value, device)
    if reference is None:
        wanted = "of shape (..., D, h, w) without a reference"
        if depths.ndim < 3:
            checks.fail(name, "depths", wanted, checks.shape_of(depths))
        return depths, (depths.shape[-2], depths.shape[-1])
    size = (reference.shape[-2], reference.shape[-1])
    if depths.ndim == 1:
        return depths[:, None, None], size
    if depths.ndim < 3 or tuple(depths.shape[-2:]) not in (size, (1, 1)):
        wanted = f"of shape (D,), (..., D, {size[0]}, {size[1]}) or (..., D, 1, 1)"
        checks.fail(name, "depths", wanted, checks.shape_of(depths))
    return depths, size


def _cameras(
    name: str,
    camera_matrix: Any,
    distortion: Any,
    source_matrices: Any,
    source_distortions: Any,
    model: Any,
    source_model: Any,
    poses: Any,
    sources: Tensor,
    size: tuple[int, int],
) -> _Cameras:
    """The cameras of a view of `size` and of sources (..., V, C, H, W)."""
    device, there = sources.device, (sources.shape[-2], sources.shape[-1])
    own = as_any_lens(name, camera_matrix, distortion, model, device)
    warn_if_relative_camera(name, "camera_matrix", own.tensors()[:4], size)
    numbers = {"camera_matrix": camera_matrix, "distortion": distortion, "poses": poses}
    warn_if_16_bit_camera(name, size, **numbers)
    counts = {"sources": sources.shape[-4]}
    if source_matrices is None:
        left_out = (("source_distortions", source_distortions), ("source_model", source_model))
        for argument, value in left_out:
            if value is not None:
                wanted = "left out without `source_matrices`: all have the view's camera then"
                checks.fail(name, argument, wanted, f"{value!r:.60}")
        if there != size:
            wanted = f"given for sources of {there}, as the view is of {size}: None is its camera"
            checks.fail(name, "source_matrices", wanted, None)
        others = own.beside(1)
    else:
        others = _others(
            name, source_matrices, source_distortions, source_model or model, counts, device
        )
        warn_if_relative_camera(name, "source_matrices", others.tensors()[:4], there)
        numbers = {"source_matrices": source_matrices, "source_distortions": source_distortions}
        warn_if_16_bit_camera(name, there, **numbers)
    moves = as_pose(name, poses, device, "poses", "V, ")
    _check_views(name, {**counts, "poses": moves.shape[-3]})
    return _Cameras(own, others, moves)


def _others(
    name: str,
    matrices: Any,
    distortions: Any,
    model: Any,
    counts: dict[str, int],
    device: torch.device,
) -> Lens:
    """The sources' lenses (..., V); adds to `counts` how many views the arguments have."""
    model = checks.check_name(name, "source_model", model, COUNTS)
    matrices = floats(name, "source_matrices", matrices, device)
    if matrices.ndim < 3:
        got = f"{checks.shape_of(matrices)}: one for all views is [None]"
        checks.fail(name, "source_matrices", "of shape (..., V, 3, 3)", got)
    counts["source_matrices"] = matrices.shape[-3]
    if distortions is not None:
        distortions = floats(name, "source_distortions", distortions, device)
        if distortions.ndim < 2 or distortions.shape[-1] not in COUNTS[model]:
            wanted = f"of shape (..., V, n) with n of {join_or(COUNTS[model])} for {model!r}"
            checks.fail(name, "source_distortions", wanted, checks.shape_of(distortions))
        counts["source_distortions"] = distortions.shape[-2]
    _check_views(name, counts)  # before the two broadcast
    return as_any_lens(name, matrices, distortions, model, device, SOURCES)


def _check_views(name: str, counts: dict[str, int]) -> None:
    """Each argument has as many views as the others, or one for all."""
    owner, views = next(((key, n) for key, n in counts.items() if n != 1), ("sources", 1))
    for argument, n in counts.items():
        if n not in (1, views):
            wanted = f"for as many views as `{owner}`, {views}, or for 1"
            checks.fail(name, argument, wanted, n)
