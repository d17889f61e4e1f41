"""Export every public function to ONNX and compare onnxruntime's results with warpkit's.

    scripts/record exports compare                # the calls not yet in data/exports.csv
    scripts/record exports compare --only '^flow' # only the matching calls
    scripts/record exports page                   # write docs/exporting.md from the file

Each call of `tests/support/exported_calls.py` is exported at one size and run at three. Some take a
minute. The exit status is 1 if an export fails without one of warpkit's errors, needs more than the
standard domain, or has different results.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import logging
import re
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnx
import onnxruntime
import torch
from torch import Tensor, nn

from tests.support import exported_calls, exported_face_calls, exported_pixel_calls
from tests.support.exported_inputs import ExportedCall

ROOT = Path(__file__).parents[3]
TABLE = ROOT / "data" / "exports.csv"
PAGE = ROOT / "docs" / "exporting.md"
SPEED = ROOT / "data" / "benchmarks" / "exported.csv"
OPSET = 20
COLUMNS = ("function", "call", "result", "dynamic", "largest", "nodes", "float64", "said")
PACKAGES = ("torch", "onnx", "onnxscript", "onnxruntime")
EQUAL = 1e-4
"""The tolerance of floating-point results; a mistake would exceed it."""


def module_of(call: ExportedCall) -> nn.Module:
    """The call as a module with one argument per tensor, which names the graph's inputs."""
    names = [f"input_{k}" for k in range(len(call.inputs))]
    namespace: dict[str, Any] = {}
    listed = ", ".join(names)
    exec(f"def forward(self, {listed}): return self.call({listed})", namespace)
    module = type("Call", (nn.Module,), {"forward": namespace["forward"]})()
    module.call = call.call
    return module.eval()


def tensors(result: Any) -> list[Tensor]:
    """The tensors of a result, which may be a tuple."""
    return [result] if isinstance(result, Tensor) else [t for part in result for t in tensors(part)]


def first_cause(error: BaseException) -> BaseException:
    """The original error below those that torch adds."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def refusal(module: nn.Module, call: ExportedCall) -> str:
    """The sentence with which warpkit rejects an export, or an empty string.

    torch's tracer takes half a minute to report it, so it is asked for without torch.
    """
    with mock.patch("warpkit.core.exports.exports_to_onnx", return_value=True):
        try:
            module(*(argument.tensor(0) for argument in call.inputs))
        except RuntimeError as error:
            if "cannot be exported to ONNX" not in str(error):
                raise
            return str(error)
    return ""


def exported(module: nn.Module, call: ExportedCall) -> onnx.ModelProto:
    """Export with torch's newest exporter, without its messages."""
    dynamic = tuple(argument.dynamic for argument in call.inputs)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        program = torch.onnx.export(
            module,
            tuple(argument.tensor(0) for argument in call.inputs),
            dynamo=True,
            opset_version=OPSET,
            dynamic_shapes=dynamic if any(dynamic) else None,
            verbose=False,
        )
    assert program is not None
    return program.model_proto


def nodes_of(graph: onnx.GraphProto) -> int:
    """The number of nodes, including both branches of each If."""
    inner = [part.g for node in graph.node for part in node.attribute if part.HasField("g")]
    return len(graph.node) + sum(map(nodes_of, inner))


def apart(got: np.ndarray, wanted: np.ndarray) -> float:
    """The largest difference; infinite if shapes, types or positions of NaN differ."""
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return np.inf
    one, other = got.astype(np.float64), wanted.astype(np.float64)
    if not np.array_equal(np.isnan(one), np.isnan(other)):
        return np.inf
    return float(np.nan_to_num(np.abs(one - other)).max(initial=0.0))


def row_of(call: ExportedCall) -> dict[str, Any]:
    """One call exported, and run at three sizes."""
    module = module_of(call)
    row: dict[str, Any] = dict(zip(("function", "call", "dynamic"), key_of(call), strict=True))
    module(
        *(inputs.tensor(0) for inputs in call.inputs)
    )  # the first call lets a Pipeline find out what its steps take
    if reason := refusal(module, call):
        return row | {"result": "refused", "said": reason}
    try:
        model = exported(module, call)
    except Exception as error:
        reason = str(first_cause(error))
        result = "refused" if "cannot be exported to ONNX" in reason else "fails"
        return row | {"result": result, "said": reason}
    kinds = {value.type.tensor_type.elem_type for value in model.graph.value_info}
    row |= {
        "nodes": nodes_of(model.graph),
        "float64": "yes" if onnx.TensorProto.DOUBLE in kinds else "",
    }
    others = {node.domain for node in model.graph.node} - {""}
    if others or model.functions:
        return row | {"result": "fails", "said": f"needs {', '.join(others)}"}
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    largest = 0.0
    for turn in range(3):
        inputs = [each.tensor(turn) for each in call.inputs]
        feed = {f"input_{k}": tensor.numpy() for k, tensor in enumerate(inputs)}
        feed = {each.name: feed[each.name] for each in session.get_inputs()}
        pairs = zip(session.run(None, feed), tensors(module(*inputs)), strict=True)
        largest = max(largest, *(apart(got, wanted.numpy()) for got, wanted in pairs))
    result = "exported" if largest <= EQUAL else "differs"
    return row | {"result": result, "largest": f"{largest:.2g}"}


def all_calls() -> list[ExportedCall]:
    """All calls in the order of the page."""
    return [*exported_pixel_calls.calls(), *exported_calls.calls(), *exported_face_calls.calls()]


def key_of(call: ExportedCall) -> tuple[str, str, str]:
    """The columns that identify a row."""
    sides = [side for argument in call.inputs for side in argument.shape if isinstance(side, str)]
    return call.function, call.words, ", ".join(dict.fromkeys(sides))


def compare(only: str | None) -> int:
    """Compare the matching calls, or those without a row: print each at once, write the file."""
    rows_of = {(row["function"], row["call"], row["dynamic"]): row for row in rows()}
    calls, wrong = all_calls(), 0
    rows_of = {key: rows_of[key] for key in map(key_of, calls) if key in rows_of}
    for call in calls:
        if only is None and key_of(call) in rows_of:
            continue
        if only is not None and not re.search(only, f"{call.function} {call.words}"):
            continue
        start = time.time()
        row = dict.fromkeys(COLUMNS, "") | row_of(call)
        rows_of[key_of(call)] = row
        print(f"{time.time() - start:4.0f} s ", *row.values(), flush=True)
        wrong += row["result"] not in ("exported", "refused")
        write([rows_of[key] for key in map(key_of, calls) if key in rows_of])
    return 1 if wrong else 0


def write(lines: list[dict[str, Any]]) -> None:
    """The file."""
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        file.write("# " + ", ".join(f"{name} {version(name)}" for name in PACKAGES) + "\n")
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def rows() -> list[dict[str, str]]:
    """The rows of the file."""
    if not TABLE.exists():
        return []
    with TABLE.open(newline="", encoding="utf-8") as file:
        file.readline()
        return list(csv.DictReader(file))


def page_text(text: str) -> str:
    """The page with new tables between its marks."""
    with TABLE.open(encoding="utf-8") as file:
        comment = file.readline().removeprefix("# ").strip()
    every_row = rows()
    lines = [
        f"Compared: {comment}.",
        "",
        "| function | call | any | nodes | float64 | difference |",
    ]
    lines.append("|---|---|---|---|---|---|")
    for row in every_row:
        if row["result"] == "exported":
            cells = (row[key] for key in ("call", "dynamic", "nodes", "float64", "largest"))
            lines.append(f"| `{row['function']}` | {' | '.join(cells)} |")
    lines += [
        "",
        "These cannot be exported:",
        "",
        "| function | call | why, and what to do |",
        "|---|---|---|",
    ]
    for row in every_row:
        if row["result"] == "refused":
            why = row["said"].partition("cannot be exported to ONNX ")[2]
            lines.append(f"| `{row['function']}` | {row['call']} | {why} |")
    for name, why in exported_calls.NOT_CALLED.items():
        lines.append(f"| `{name}` | | {why} |")
    return between(between(text, "exports", lines), "speed", speed())


def speed() -> list[str]:
    """The table of data/benchmarks/exported.csv: our time, and that of `Resize` relative to it."""
    with SPEED.open(newline="", encoding="utf-8") as file:
        measured = list(csv.DictReader(file))
    times: dict[str, dict[str, str]] = {}
    for ours, own in zip(measured[::2], measured[1::2], strict=True):
        kind = ours["computes"].removeprefix("uint8 ")
        cell = f"{ours['ms']} ({own['times_warpkit']})"
        times.setdefault(kind, {})[f"{ours['from']} to {ours['to']}"] = cell
    sizes = list(next(iter(times.values())))
    lines = [f"| resize | {' | '.join(sizes)} |", "|---" * (len(sizes) + 1) + "|"]
    return lines + [f"| {kind} | {' | '.join(cells.values())} |" for kind, cells in times.items()]


def between(text: str, mark: str, lines: list[str]) -> str:
    """The text with new lines between its marks."""
    begin, end = f"<!-- {mark} -->", f"<!-- end of {mark} -->"
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2]
    return f"{before}{begin}\n\n{chr(10).join(lines)}\n\n{end}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("compare", "page"))
    parser.add_argument(
        "--only", metavar="PATTERN", help="regular expression of the function and its call"
    )
    options = parser.parse_args()
    if options.what == "page":
        PAGE.write_text(page_text(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    onnxruntime.set_default_logger_severity(4)
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    return compare(options.only)


if __name__ == "__main__":
    raise SystemExit(main())
