"""Unsupported placements and another run's settings: one clear error each."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard

import warpkit as wk
import warpkit.distributed
from examples.attack_distributed import settle
from tests.distributed.test_distributed import BOXES, IMAGES, INDEX, TURNS, VALUES
from tests.support.forks import python
from tests.support.processes import Processes


def refusal(name: str) -> str:
    """The error message of a call with unsupported placements."""
    function, given, _ = REFUSED[name]
    mesh = init_device_mesh("cpu", (4,))
    try:
        function(**{a: at(*v, mesh) if isinstance(v, tuple) else v for a, v in given.items()})
    except (TypeError, ValueError) as error:
        return str(error)
    return "no error"


def at(value: Tensor, placement: Placement, mesh: DeviceMesh) -> DTensor:
    if isinstance(placement, Partial):
        return DTensor.from_local(value, mesh, [placement])
    return DTensor.from_local(value, mesh, [Replicate()]).redistribute(mesh, [placement])


CROP = partial(wk.crop_patches, size=(2, 2))
OBJECTS = {"boxes": BOXES, "matrices": TURNS, "image_index": INDEX}
REFUSED: dict[str, tuple[Callable[..., Tensor], dict[str, Any], str]] = {
    "channels": (
        wk.warp_affine,
        {"image": (IMAGES, Shard(1)), "matrix": TURNS},
        """warp_affine: `image` must be redistributed to Shard(0) or Replicate(),
        got (Shard(dim=1),) of shape (5, 3, 6, 7)""",
    ),
    "a partial sum": (
        wk.warp_affine,
        {"image": (IMAGES, Shard(0)), "matrix": (TURNS, Partial())},
        """warp_affine: `matrix` must be redistributed to Shard(0) or Replicate(),
        got (Partial(sum),) of shape (5, 2, 3)""",
    ),
    "a list to be split": (
        wk.warp_affine,
        {"image": (IMAGES, Shard(0)), "matrix": TURNS.tolist()},
        """warp_affine: `matrix` must be a tensor or an array where it is split over processes,
        got list""",
    ),
    "crops of images elsewhere": (
        CROP,
        {"images": (IMAGES, Shard(0)), "boxes": BOXES, "image_index": INDEX},
        """crop_patches: `boxes` must be Shard(0) where `images` are: each on its image's process,
        got a tensor without placements""",
    ),
    "painters of one image": (
        wk.transform_patches,
        {"images": IMAGES, "boxes": (BOXES, Shard(0)), "matrices": TURNS, "image_index": INDEX},
        """transform_patches: `images` must be Shard(0) where the objects are, or these Replicate(),
        got a tensor without placements""",
    ),
    "no index": (
        wk.transform_patches,
        {"images": (IMAGES, Shard(0)), "boxes": BOXES, "matrices": TURNS, "image_index": None},
        """transform_patches: `image_index` must be given where the images are sharded, the number
        of each in the whole batch, got None""",
    ),
    "writes in parts": (
        wk.indexing.assign,
        {"array": (VALUES, Replicate()), "index": (VALUES[0], Shard(0)), "value": VALUES[:3]},
        """assign: `index` must be redistributed to Replicate(),
        got (Shard(dim=0),) of shape (3,)""",
    ),
    "rows": (
        wk.indexing.linear_lookup,
        {"array": (VALUES, Shard(0)), "index": VALUES[0]},
        """linear_lookup: `array` must be redistributed to Shard(1) or Replicate(),
        got (Shard(dim=0),) of shape (5, 3)""",
    ),
    "two things over one dimension": (
        wk.indexing.linear_lookup,
        {"array": (VALUES, Shard(1)), "index": (VALUES[0], Shard(0))},
        """linear_lookup: `array` must be the only argument that is sharded over dimension 0 of the
        mesh, got (Shard(dim=1),)""",
    ),
    "lengths": (
        wk.warp_affine,
        {"image": (IMAGES, Shard(0)), "matrix": TURNS[:4]},
        """warp_affine: `matrix` must be 5 long in dimension 0, as what is sharded is,
        got (4, 2, 3)""",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_placements_are_rejected(processes: Processes, name: str):
    text = REFUSED[name][2]
    assert processes.run(refusal, name) == [" ".join(text.split())] * 4


def misplaced() -> str:
    """The error for objects whose images are on another process."""
    mesh = init_device_mesh("cpu", (4,))
    images, boxes, index = (at(v, Shard(0), mesh) for v in (IMAGES, BOXES, INDEX.flip(0)))
    try:
        CROP(images=images, boxes=boxes, image_index=index)
    except ValueError as error:
        return str(error)
    return "no error"


def test_an_object_must_be_on_its_images_process(processes: Processes):
    text = "crop_patches: `image_index` must be in [0, 2), the images of its process, got 4 at 0"
    assert processes.run(misplaced)[0] == text


def test_dtensors_from_before_the_import_are_rejected():
    code = """
import torch, torch.distributed as dist, warpkit
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
images = distribute_tensor(torch.ones(1, 1, 2, 2), init_device_mesh("cpu", (1,)), [Shard(0)])
try:
    warpkit.warp_affine(images, torch.eye(2, 3))
except TypeError as error:
    print(error)
dist.destroy_process_group()
"""
    done = subprocess.run([*python(), "-c", code], capture_output=True, text=True, check=True)
    wanted = "a plain tensor, or any after `import warpkit.distributed`"
    assert done.stdout.strip() == f"warp_affine: `image` must be {wanted}, got DTensor"


def settle_again(folder: Path) -> int | str | None:
    try:
        settle(folder, {"steps": 2})
    except SystemExit as end:
        return end.code
    return None


def test_the_folder_of_another_run_is_rejected(processes: Processes, tmp_path: Path):
    assert processes.run(settle_again, tmp_path) == [None] * 4
    assert json.loads((tmp_path / "options.json").read_text()) == {"steps": 2}
    (tmp_path / "options.json").write_text('{"steps": 1}')
    assert processes.run(settle_again, tmp_path) == [2] * 4
