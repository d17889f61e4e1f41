"""Compare `Pipeline.from_processor` with every image processor of the installed transformers.

    scripts/record processors defaults       # warpkit/attacks/processors/defaults.json
    scripts/record processors compare        # data/processors/kinds.csv
    scripts/record processors extremes       # data/processors/extremes.csv
    scripts/record processors expected       # data/processors/expected.json, for the tests
    scripts/record processors outputs        # data/processors/outputs.json, for the tests
    scripts/record processors page           # write docs/processors.md from the csv files

`compare` runs each class, without a configuration, and its pipeline on noise of eight odd sizes,
and all outputs of random lists, by its configurations of tests/support/whole_processors.py.
`extremes` calls each class, by each configuration, with 1 x 1000 and 1000 x 1 pixels. Nothing is
downloaded. The exit status is 1 if a supported kind differs by more than 1e-5.
"""

from __future__ import annotations

import argparse
import csv
import json
import warnings
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.support import processors as asked
from tests.support import whole_processors as whole
from warpkit.attacks import Pipeline
from warpkit.attacks.processors.configuration import defaults
from warpkit.attacks.processors.kinds import KINDS, REFUSED
from warpkit.attacks.processors.outputs import resized
from warpkit.attacks.processors.tile_kinds import TILE_KINDS

ROOT = Path(__file__).parents[3]
DEFAULTS = ROOT / "warpkit" / "attacks" / "processors" / "defaults.json"
TABLE = ROOT / "data" / "processors" / "kinds.csv"
EXTREMES = ROOT / "data" / "processors" / "extremes.csv"
PAGE = ROOT / "docs" / "processors.md"
COLUMNS = ("kind", "class", "library", "result", "largest", "pictures", "configurations")
COLUMNS += ("calls", "images", "refused", "alone", "said")
EQUAL = 1e-5

UNREAD = """_processor_class bos_id character character_list class_info_file
    codebook_ constant_ dict do_convert_ do_reduce_labels eos_id format
    high_res_background image_num_channels image_processor_type image_seq_length
    input_size_patches is_vqa mask_ num_ prompt_scale repo_path return_ td_token
    tesseract total_mask_patches use_im use_square"""
"""The beginnings of options that do not affect pixel values; `constant_values` is kept."""
SHORT_SIDES = ("VideoLlava", "Vivit")
"""Classes that take a size of one number as the shorter side, although no attribute says so."""


def record_defaults() -> None:
    """Write the options of every supported class, one line per kind; both libraries must agree."""
    rows: dict[str, dict[str, Any]] = {}
    for name, kind_class in asked.processor_classes().items():
        kind = asked.kind_name(name)
        if kind not in KINDS:
            continue
        options = json.loads(kind_class().to_json_string())
        recorded = {
            key: value
            for key, value in sorted(options.items())
            if key == "constant_values" or not key.startswith(tuple(UNREAD.split()))
        }
        is_square = bool(getattr(kind_class, "default_to_square", True)) and kind not in SHORT_SIDES
        row = {"default_to_square": is_square, **recorded}
        if rows.setdefault(kind, row) != row:
            raise SystemExit(f"{name} has other defaults than its twin: {row}")
    lines = [f"  {json.dumps(kind)}: {json.dumps(row)}" for kind, row in sorted(rows.items())]
    DEFAULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{len(rows)} kinds; not found: {', '.join(sorted(set(KINDS) - set(rows))) or 'none'}")


def compared(name: str, kind_class: type) -> dict[str, Any]:
    """Compare one class with its pipeline."""
    kind, row = asked.kind_name(name), dict.fromkeys(COLUMNS, "")
    row.update({"kind": kind, "class": name, "result": "refused", "pictures": 0})
    if kind in REFUSED:
        return {**row, "said": REFUSED[kind]}
    if kind not in KINDS:
        return {**row, "said": "read as timm's configuration" if kind == "TimmWrapper" else "?"}
    processor = kind_class(**asked.WITHOUT.get(kind, {}))
    row["library"] = asked.library_of(processor)
    switches = ", ".join(f"{key} off" for key in whole.needed(kind))
    row.update(
        dict.fromkeys(("calls", "images", "refused", "alone"), 0), result="equal", said=switches
    )
    try:
        largest = max(_of_pictures(processor, kind, row), _of_lists(kind_class, kind, row))
    except AssertionError as error:
        return {**row, "result": "differs", "said": str(error)}
    if largest > EQUAL or not row["calls"]:
        row["result"] = "differs"
    return {**row, "largest": f"{largest:.2g}"}


def _of_pictures(processor: Any, kind: str, row: dict[str, Any]) -> float:
    """The largest difference of single pictures of eight sizes."""
    if kind in asked.NEEDS_A_LIST.split():
        return 0.0
    pipeline, largest = Pipeline.from_processor(processor), 0.0
    for size in asked.SIZES:
        array = asked.picture(size)
        try:
            wanted = asked.made_by(processor, kind, array)
        except Exception:  # the processor itself rejects the size
            continue
        got = pipeline(asked.tensor(array))[0].numpy()
        assert got.shape == wanted.shape, f"{got.shape} for {wanted.shape}"
        largest = max(largest, float(np.abs(got.astype(np.float64) - wanted).max()))
        row["pictures"] += 1
    return largest


def _of_lists(kind_class: type, kind: str, row: dict[str, Any]) -> float:
    """The largest difference of all outputs of random lists: few with the defaults."""
    largest, without = 0.0, whole.needed(kind)
    changed = [options for options in whole.configurations(kind) if options != without]
    row["configurations"] = 1 + len(changed)
    for options, count in ((without, 3), *((options, 20) for options in changed)):
        processor = kind_class(**options)
        pipeline = Pipeline.from_processor(processor)
        for sizes in whole.calls(kind, count):
            difference = whole.compared(processor, kind, pipeline, sizes)
            if isinstance(difference, str):
                row["refused" if difference == "refused" else "alone"] += 1
                continue
            largest = max(largest, difference)
            row["calls"] += 1
            row["images"] += len(whole.flat(sizes))
    return largest


def compare() -> int:
    """Compare all classes; print each at once, and write the file."""
    TABLE.parent.mkdir(exist_ok=True)
    wrong = 0
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        packages = ("transformers", "torch", "torchvision", "pillow")
        file.write("# " + ", ".join(f"{name} {version(name)}" for name in packages) + "\n")
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for name, kind_class in asked.processor_classes().items():
            row = compared(name, kind_class)
            writer.writerow(row)
            file.flush()
            wrong += row["result"] == "differs" or row["said"] == "?"
            if row["result"] != "equal" or row["largest"] != "0":
                print(*row.values(), flush=True)
    return 1 if wrong else 0


LARGEST = 60e6
"""The most pixels of a resized picture that `extremes` asks for: a gigabyte in all."""


def extremes() -> int:
    """Compare 1 x 1000 and 1000 x 1 by every configuration, and write the file."""
    wrong = 0
    with EXTREMES.open("w", newline="", encoding="utf-8") as file:
        results = ("equal", "refused", "alone", "large", "differs")
        writer = csv.DictWriter(file, ("class", *results), lineterminator="\n")
        writer.writeheader()
        for name, kind_class in asked.processor_classes().items():
            kind = asked.kind_name(name)
            if kind not in KINDS:
                continue
            without, row = whole.needed(kind), dict.fromkeys(results, 0)
            changed = [options for options in whole.configurations(kind) if options != without]
            for options in (without, *changed):
                processor = kind_class(**options)
                for size in ((1, 1000), (1000, 1)):
                    row[_extreme(processor, kind, size)] += 1
            writer.writerow({"class": name, **row})
            file.flush()
            wrong += row["differs"]
            print(name, *row.values(), flush=True)
    return 1 if wrong else 0


def _extreme(processor: Any, kind: str, size: tuple[int, int]) -> str:
    """How one call compares: equal, refused by both or by the processor alone, or too large."""
    pipeline = Pipeline.from_processor(processor)
    try:
        assert pipeline.processor is not None
        if np.prod(resized(*size, pipeline.processor.options)) > LARGEST:
            return "large"
    except (ValueError, ZeroDivisionError, KeyError):
        pass  # refused, or a kind without a rule of its own
    try:
        difference = whole.compared(processor, kind, pipeline, [size])
    except AssertionError:
        return "differs"
    except RuntimeError as error:
        return "large" if "allocate" in str(error) else "differs"
    if isinstance(difference, str):
        return "refused" if difference == "refused" else "alone"
    return "equal" if difference <= EQUAL else "differs"


def record_expected() -> None:
    """Write a few numbers of each processor's results for two pictures."""
    rows: dict[str, dict[str, Any]] = {}
    for name, kind_class in asked.processor_classes().items():
        kind = asked.kind_name(name)
        if kind not in KINDS or kind in asked.NEEDS_A_LIST.split():
            continue
        options = {**asked.WITHOUT.get(kind, {}), **asked.SMALL.get(kind, {})}
        processor = kind_class(**options)
        row = rows.setdefault(kind, {"options": options})
        row[asked.library_of(processor)] = [
            asked.summary(asked.made_by(processor, kind, asked.picture(size)))
            for size in asked.RECORDED_SIZES
        ]
    lines = [f"  {json.dumps(kind)}: {json.dumps(row)}" for kind, row in sorted(rows.items())]
    asked.RECORDED.parent.mkdir(exist_ok=True)
    asked.RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{len(rows)} kinds")


def record_outputs() -> None:
    """Write what each processor returns for a few lists of pictures, in short."""
    rows_of: dict[str, list[dict[str, Any]]] = {}
    for name, kind_class in asked.processor_classes().items():
        kind = asked.kind_name(name)
        if kind not in KINDS:
            continue
        rows = rows_of.setdefault(kind, [{"options": x} for x in whole.configurations(kind)])
        for row in rows:
            processor = kind_class(**row["options"])
            row[asked.library_of(processor)] = [
                _summary(processor, kind, sizes) for sizes in whole.recorded_calls(kind)
            ]
    lines = [f"  {json.dumps(kind)}: {json.dumps(rows)}" for kind, rows in sorted(rows_of.items())]
    whole.RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{len(rows_of)} kinds")


def _summary(processor: Any, kind: str, sizes: list[Any]) -> dict[str, Any] | None:
    """None of a call that the processor refuses."""
    try:
        outputs = whole.called(processor, kind, sizes)
    except Exception:
        return None
    return {key: whole.summary(value) for key, value in outputs.items()}


def write_page() -> None:
    """Write the page's tables between its marks."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        comment = file.readline().removeprefix("# ").strip()
        rows = list(csv.DictReader(file))
    kinds: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)
    for row in rows:
        kinds[row["kind"]][row["library"]] = row
    served = {kind: by for kind, by in kinds.items() if "" not in by}
    lines = [f"Compared: {comment}.", ""]
    for library in ("torchvision", "pillow"):
        equal = [by[library] for by in served.values() if library in by]
        largest = max(float(row["largest"]) for row in equal)
        images, refused = (sum(int(row[key]) for row in equal) for key in ("images", "refused"))
        lines.append(
            f"- {library}: {len(equal)} kinds, {images} images in lists, largest difference "
            f"{largest:g}; {refused} calls refused by both"
        )
    with EXTREMES.open(newline="", encoding="utf-8") as file:
        thin = list(csv.DictReader(file))
    keys = ("equal", "refused", "alone", "large")
    equal, refused, alone, large = (sum(int(row[key]) for row in thin) for key in keys)
    lines.append(
        f"- 1 x 1000 and 1000 x 1 by every configuration of both: {equal} calls equal, {refused} "
        f"refused by both, {alone} that the processor alone refuses, {large} too large to ask"
    )
    lines += ["", f"{len(served)} kinds are served:", "", *_served(served)]
    lines += ["", "And these are refused:", "", "| kind | why |", "|---|---|"]
    refused = {kind: by[""]["said"] for kind, by in kinds.items() if kind in REFUSED}
    lines += [f"| {kind} | {comment} |" for kind, comment in refused.items()]
    text = PAGE.read_text(encoding="utf-8")
    begin, end = "<!-- kinds -->", "<!-- end of kinds -->"
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2]
    PAGE.write_text(f"{before}{begin}\n\n{chr(10).join(lines)}\n\n{end}{after}", encoding="utf-8")


def _served(served: dict[str, dict[str, dict[str, str]]]) -> list[str]:
    lines = ["| kind | torchvision | Pillow | hands | images | only without |"]
    lines.append("|---|---|---|---|---|---|")
    for kind, by in served.items():
        cells = [by[key]["largest"] if key in by else "-" for key in ("torchvision", "pillow")]
        if KINDS[kind].get("library") == "pillow":
            cells[0] = "refused"
        images = sum(int(row["images"]) for row in by.values())
        entry = KINDS[kind]
        off = [f"`{key}`" for key in entry.get("off", {})]
        off += [f'`{key}="{value}"`' for key, (value, _) in entry.get("without", {}).items()]
        lines.append(
            f"| {kind} | {cells[0]} | {cells[1]} | {_hands(kind)} | {images} | {', '.join(off)} |"
        )
    return lines


def _hands(kind: str) -> str:
    """What a pipeline returns for an image."""
    rows = (*asked.ROWS.split(), *asked.ROWS_OF_SEARCHED_SIZES.split(), "Gemma4", "Siglip2")
    if kind in rows:
        return "patches"
    if kind in asked.VIDEOS:
        return "a frame"
    if "pixel_values_local" in KINDS[kind].get("also", {}):
        return "a picture, and tiles beside it"
    if kind == "Gemma3":  # whose option is null by default
        return "tiles, by `do_pan_and_scan`"
    if kind in TILE_KINDS and not KINDS[kind].get("always_tiles"):
        by_option = [key for key in asked.TILE_OPTIONS if key in defaults()[kind]]
        return f"tiles, by `{by_option[0]}`" if by_option else "tiles"
    return "tiles" if kind in TILE_KINDS else "a picture"


def main() -> int:
    functions = {
        "compare": compare,
        "defaults": record_defaults,
        "expected": record_expected,
        "extremes": extremes,
        "outputs": record_outputs,
        "page": write_page,
    }
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=functions)
    what = parser.parse_args().what
    warnings.filterwarnings("ignore")
    torch.set_grad_enabled(False)
    return functions[what]() or 0


if __name__ == "__main__":
    raise SystemExit(main())
