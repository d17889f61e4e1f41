"""Exported resizes in onnxruntime, compared with its `Resize`: python -m benchmarks.exported

RGB bytes to bytes on the CPU, one thread, a batch of 1. Each model first proves that it gives
warpkit's own integers. `Resize` gives other pixels; it gets the nearest mode, linear or cubic, with
antialias=1 if the filter is antialiased or averages. It has no lanczos, and no cubic for bytes
without antialias: those rows compare with antialiased cubic. Times are the least CPU time of the
thread, in turns.
"""

from __future__ import annotations

import argparse
import csv
import time
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper
from torch import Tensor

import warpkit as wk
from warpkit.cli.bench.timing import Turns, in_turns
from warpkit.core.environment import processor

LIBRARIES = ("torch", "onnx", "onnxscript", "onnxruntime", "warpkit")
ROWS = Path(__file__).parents[1] / "data" / "benchmarks" / "exported.csv"
SIZES = (
    ((480, 640), (224, 224)),
    ((1080, 1920), (360, 640)),
    ((224, 224), (512, 512)),
)
BYTES = TensorProto.UINT8


class Kind(NamedTuple):
    """A resize, and the mode and antialias of the `Resize` that it is compared with."""

    arithmetic: str
    interpolation: str
    mode: str
    antialias: int


KINDS = (
    Kind("pillow", "bilinear", "linear", 1),
    Kind("pillow", "bicubic", "cubic", 1),
    Kind("pillow", "lanczos", "cubic", 1),
    Kind("torchvision", "bilinear", "linear", 1),
    Kind("torchvision", "bicubic", "cubic", 1),
    Kind("opencv5", "bilinear", "linear", 0),
    Kind("opencv5", "bicubic", "cubic", 1),
    Kind("opencv5", "area", "linear", 1),
    Kind("opencv5", "nearest", "nearest", 0),
)


class Resized(torch.nn.Module):
    """One resize as a module."""

    def __init__(self, kind: Kind, size: tuple[int, int]) -> None:
        super().__init__()
        options = {"interpolation": kind.interpolation, "arithmetic": kind.arithmetic}
        self.resize = partial(wk.resize, size=size, **options)

    def forward(self, image: Tensor) -> Tensor:
        """Resize (1, 3, H, W)."""
        return self.resize(image)


def session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    """The model on one thread of the CPU."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def own_resize(kind: Kind, source: tuple[int, int], size: tuple[int, int]) -> onnx.ModelProto:
    """onnxruntime's `Resize`."""
    mode = {"mode": kind.mode, "coordinate_transformation_mode": "half_pixel"}
    if kind.antialias:
        mode["antialias"] = 1
    sizes = helper.make_tensor("sizes", TensorProto.INT64, [4], [1, 3, *size])
    graph = helper.make_graph(
        [helper.make_node("Resize", ["image", "", "", "sizes"], ["made"], **mode)],
        "resize",
        [helper.make_tensor_value_info("image", BYTES, [1, 3, *source])],
        [helper.make_tensor_value_info("made", BYTES, [1, 3, *size])],
        [sizes],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def measure(kind: Kind, source: tuple[int, int], size: tuple[int, int], turns: int) -> list[dict]:
    """A row for each way."""
    module = Resized(kind, size).eval()
    image = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (1, 3, *source), np.uint8))
    model = torch.onnx.export(module, (image,), dynamo=True, opset_version=20, verbose=False)
    assert model is not None
    ours, own = session(model.model_proto), session(own_resize(kind, source, size))
    feeds = [{part.get_inputs()[0].name: image.numpy()} for part in (ours, own)]
    differing = int((ours.run(None, feeds[0])[0] != module(image).numpy()).sum())
    assert differing == 0, f"{kind}: {differing} values differ"
    calls = {
        name: partial(part.run, None, feed)
        for name, part, feed in zip(("ours", "own"), (ours, own), feeds, strict=True)
    }
    how = Turns(turns, untimed=0, warm=True, clock=time.thread_time)
    least = [min(seconds) * 1e3 for seconds in in_turns(calls, how).values()]
    ways = ("warpkit", f"Resize {kind.mode}{' antialias' * kind.antialias}")
    graph = {
        "nodes": len(model.model_proto.graph.node),
        "KiB": model.model_proto.ByteSize() // 1024,
    }
    return [
        {
            "computes": f"uint8 {kind.arithmetic} {kind.interpolation}",
            "from": "x".join(map(str, source)),
            "to": "x".join(map(str, size)),
            "way": way,
            "ms": f"{time_taken:.3g}",
            "times_warpkit": f"{time_taken / least[0]:.2f}",
            **(graph if way == "warpkit" else {"nodes": 1, "KiB": 0}),
            "least_of": turns,
            "threads": 1,
            "machine": processor(),
            **{name: version(name) for name in LIBRARIES},
            "date": time.strftime("%Y-%m-%d"),
        }
        for way, time_taken in zip(ways, least, strict=True)
    ]


def main() -> None:
    """Measure and print; write the rows where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--only", default="", help="kinds whose name contains this")
    parser.add_argument("--out", type=Path, help=f"a CSV file to write, such as {ROWS.name}")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for source, size in SIZES:
        for kind in KINDS:
            if options.only in " ".join(map(str, kind)):
                for row in measure(kind, source, size, options.turns):
                    rows.append(row)
                    print(*list(row.values())[:7], flush=True)
    if options.out:
        with options.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
