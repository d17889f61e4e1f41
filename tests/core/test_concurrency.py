"""Many threads, all kinds of worker processes, interrupts, and memory after many calls."""

from __future__ import annotations

import gc
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

import warpkit as wk
from tests.support import ROOT
from tests.support.forks import python
from tests.support.inputs import noise
from warpkit import attacks, camera, flow, transforms

MATRIX = [[0.9, 0.2, 1.3], [-0.2, 1.1, 0.4]]


def both_ways(seed: int, side: int = 24) -> list[torch.Tensor]:
    """A warp, a patch pasted onto it, and their gradients."""
    image = noise(2, 3, side, side, dtype=torch.float32, seed=seed).requires_grad_()
    matrix = torch.tensor(MATRIX).requires_grad_()
    out = wk.warp_affine(image, matrix, border="reflect_101")
    out.square().sum().backward()
    assert image.grad is not None
    assert matrix.grad is not None
    patch = noise(3, 7, 9, dtype=torch.float32, seed=seed).requires_grad_()
    boxes = [[2.5, 3, side - 2, side - 4], [1, 1, side - 1, 9]]
    places = wk.box_to_matrix(boxes, (7, 9), angle=10.0)
    pasted = wk.paste_patches(out.detach(), patch, places, [0, 1])
    pasted.square().sum().backward()
    assert patch.grad is not None
    return [out.detach(), image.grad, matrix.grad, pasted.detach(), patch.grad]


LENS = torch.tensor([0.1, -0.02, 0.001, 0.002, 0.01])
EYE = [[9.0, 0.0, 9.0], [0.0, 9.0, 8.0], [0.0, 0.0, 1.0]]
RESIZES = [
    ("exact", "bilinear"),
    ("pillow", "lanczos"),
    ("opencv4", "bicubic"),
    ("opencv5", "area"),
    ("opencv5_ipp", "bilinear"),
]
FUSED = transforms.Fused([transforms.RandomAffine(30), transforms.Resize((15, 13))])


def all_else(seed: int, side: int = 24) -> list[torch.Tensor]:
    """Results of the other functions on images, and their gradients."""
    image = noise(1, 3, side, side, dtype=torch.float32, seed=seed).requires_grad_()
    field = (4 * noise(side, side, 2, dtype=torch.float32, seed=seed)).requires_grad_()
    camera_matrix = torch.tensor(EYE)
    angle = {"angle": 9.0 + seed, "translate": (0, 0), "scale": 1.0, "shear": (0.0, 0.0)}
    made = [
        wk.warp_flow(image, field, border="reflect"),
        flow.splat(image, field).image,
        flow.splat(image, field, mode="softmax", weights=image[:, :1]).image,
        camera.undistort(image, camera_matrix, LENS),
        FUSED.transform(image, {"draws": [angle, {}]}),
        attacks.jpeg(60)(image),
        *(wk.resize(image, (17, 19), arithmetic=a, interpolation=i) for a, i in RESIZES),
    ]
    grads = torch.autograd.grad(sum((m.square().sum() for m in made), image.new_zeros(())), image)
    levels = (image[0].detach() * 255).byte().permute(1, 2, 0).numpy()
    points = levels.reshape(-1, 1, 3)[:9, :, :2].astype(float)
    arrays = [
        *(wk.opencv.resize(levels, (17, 19), interpolation=i) for i in range(5)),
        wk.opencv.undistort(levels, camera_matrix.numpy(), LENS.numpy()),
        wk.opencv.undistortPoints(points, camera_matrix.numpy(), LENS.numpy()),
        wk.opencv.warpAffine(levels, np.array(MATRIX), (17, 19)),
        wk.opencv.warpPolar(levels, (17, 19), (9.0, 9.0), 9.0, 1),
        wk.opencv.pyrDown(levels),
        wk.opencv.pyrUp(levels),
        wk.opencv.getRectSubPix(levels, (5, 5), (7.3, 8.6)),
        wk.opencv.copyMakeBorder(levels, 1, 2, 3, 4, 4),
    ]
    return [*(m.detach() for m in made), *grads, *map(torch.from_numpy, arrays)]


def everything(seed: int, side: int = 24) -> list[torch.Tensor]:
    """The results of both."""
    return both_ways(seed, side) + all_else(seed, side if side < 100 else side // 4)


@pytest.mark.parametrize("side", [24, 320])  # without and with the pool of threads
def test_sixteen_threads_give_the_results_of_one(side):
    alone = [everything(seed, side) for seed in range(2)]
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(lambda n: everything(n % 2, side), range(16)))
    for n, found in enumerate(together):
        assert all(map(torch.equal, found, alone[n % 2]))


WORKERS = """
import multiprocessing, sys, torch
sys.path.insert(0, sys.argv[1])
from tests.core.test_concurrency import everything

if __name__ == "__main__":
    torch.set_num_threads(2)
    here = everything(0, 320)
    for method, count in (("fork", 3), ("spawn", 1)):
        if method not in multiprocessing.get_all_start_methods():
            continue
        context = multiprocessing.get_context(method)
        # as in a DataLoader: after a fork OpenMP, and with it torch, hangs with several threads
        with context.Pool(count, torch.set_num_threads, (1,)) as pool:
            there = pool.starmap(everything, [(0, 320)] * count, chunksize=1)
        assert all(all(map(torch.equal, found, here)) for found in there), method
    print("done")
"""


def test_workers_give_the_results_of_one_process(tmp_path):
    script = tmp_path / "workers.py"
    script.write_text(WORKERS)
    command = [*python(), str(script), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.stdout == "done\n", done.stderr


def warp_until_interrupted(image: torch.Tensor, **options: str) -> None:
    for _ in range(1000):
        wk.warp_affine(image, MATRIX, **options)
    raise AssertionError("1000 calls and no interrupt")


def test_an_interrupt_leaves_the_pool_usable():
    before = torch.get_num_threads()
    image = noise(1, 3, 2000, 2000, dtype=torch.float32)
    options = {"interpolation": "lanczos4", "backend": "cpu"}
    expected = wk.warp_affine(image, MATRIX, **options)  # compiles the kernel
    torch.set_num_threads(2)
    caller = threading.get_ident()
    # background jobs of a shell start with this signal ignored
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.02, lambda: signal.pthread_kill(caller, signal.SIGINT))
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            warp_until_interrupted(image, **options)
        timer.join()
        assert torch.equal(wk.warp_affine(image, MATRIX, **options), expected)
    finally:
        signal.signal(signal.SIGINT, handler)
        torch.set_num_threads(before)


def resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


CALLS = {
    "warp_affine by the kernels": lambda image, matrix: wk.warp_affine(
        image, matrix, backend="cpu"
    ),
    "warp_affine by the reference": lambda image, matrix: wk.warp_affine(
        image, matrix, backend="reference"
    ),
    "resize": lambda image, matrix: wk.resize(image, (64, 60), arithmetic="pillow") * matrix[0, 0],
    "splat": lambda image, matrix: flow.splat(image, flow.from_matrix(matrix, (64, 64))).image,
    "undistort": lambda image, matrix: camera.undistort(
        image, torch.tensor(EYE), matrix[0, [1] * 4]
    ),
    "Pipeline": lambda image, matrix: attacks.Pipeline(attacks.jpeg())(image) * matrix[0, 0],
}


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="has no /proc")
@pytest.mark.parametrize("name", CALLS)
def test_many_calls_leak_no_memory(name):
    image = noise(1, 3, 64, 64, dtype=torch.float32).requires_grad_()
    matrix = torch.tensor(MATRIX, requires_grad=True)

    def call() -> None:
        torch.autograd.grad(CALLS[name](image, matrix).sum(), (image, matrix))

    # a fresh process first fills its pools of memory: `splat` grows for 750 calls, by 43 MiB
    growth = []
    for _ in range(12):
        before = resident()
        for _ in range(100):
            call()
        growth.append(resident() - before)
        # one leaked result of 48 KiB per call would make 4.7 MiB in every round
        if growth[-1] < 1.6 * 2**20:
            return
    pytest.fail(f"100 calls after another need more memory, in bytes: {growth}")
