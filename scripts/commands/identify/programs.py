"""Run `identify` on random and on real programs, and count its right answers: data/identify/*.csv.

    scripts/identify programs random --seed 10000 --count 1000 --out data/identify/random.csv
    scripts/identify programs traps --out data/identify/traps.csv
    scripts/identify programs table data/identify/random.csv
    scripts/identify shipped    # `real`, `processors` and `page`, in an environment of their own

`random` draws programs of OpenCV, Pillow and torch, and of torchvision, albumentations and
transformers if installed. A program counts as "whole" if every attribute matches its code and the
twin has its values on new pictures; as "wrong" if the answer claims an attribute that does not
match. `real` identifies the programs that packages ship, and `processors` the image processors of
transformers: for these the twin is compared on new pictures, and with `Pipeline.from_processor`
too. The exit status is 1 if any answer is wrong.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.support import processors
from tests.support.programs import apart, draw, installed, mistakes, traps
from tests.support.shipped import SOURCES, shipped
from warpkit.attacks import Pipeline
from warpkit.attacks.processors.kinds import KINDS
from warpkit.validation import Preprocessing, identify
from warpkit.validation.programs.program import Program

COLUMNS = ("library", "name", "result", "calls", "seconds", "said")
FLOAT16 = 0.5
"""How many levels a twin may differ from float16 results: their last bit at white."""
EXACT = 0.002

Row = dict[str, Any]


def timed(function: Any, takes: str) -> tuple[Preprocessing | None, float, str]:
    """The answer, the CPU seconds, and the text of an error."""
    begun = time.process_time()
    try:
        answer, text = identify(function, takes=takes), ""
    except Exception as error:
        answer, text = None, f"{type(error).__name__}: {error}"
    return answer, time.process_time() - begun, text


def row(library: str, name: str, answer: Preprocessing | None, seconds: float, message: str) -> Row:
    """A row of the table, without its result."""
    text = message or ("" if answer is None else str(answer))
    calls = 0 if answer is None else answer.calls
    values = (library, name, "not", calls, round(seconds, 2), " ".join(text.split()))
    return dict(zip(COLUMNS, values, strict=True))


def random_rows(seed: int, count: int) -> Iterator[Row]:
    """Random programs, one per seed."""
    for number in range(seed, seed + count):
        program = draw(number, installed())
        answer, seconds, text = timed(program.function, program.takes)
        line = row(program.library, str(number), answer, seconds, text)
        if answer is not None and answer.known:
            wrong = mistakes(program, answer)
            far = apart(program, answer, number + 1_000_000)
            if far > (FLOAT16 if answer.dtype == "float16" else EXACT):
                wrong.append(f"the twin is {far:.3g} levels off")
            line["result"] = "wrong" if wrong else "whole"
            line["said"] = "; ".join(wrong) if wrong else ""
        yield line


def trap_rows() -> Iterator[Row]:
    """Programs that `identify` must not claim to know."""
    for name, program in traps().items():
        answer, seconds, text = timed(program.function, program.takes)
        line = row("traps", name, answer, seconds, text)
        claimed = answer is not None and (answer.known or answer.arithmetic is not None)
        yield line | {"result": "wrong" if claimed else "not claimed"}


class Judged:
    """A program that `identify` has named, in the form that `apart` takes."""

    def __init__(self, function: Any, answer: Preprocessing) -> None:
        self.program = Program(function, str(answer.takes), lambda words: None)
        self.program.layout, self.program.batched = str(answer.layout), bool(answer.batched)

    def numbers(self, picture: Any) -> Any:
        """The program's result (C, h, w) for a picture (H, W, 3), uint8."""
        return self.program(picture)


def judged(package: str, name: str, function: Any, takes: str) -> tuple[Row, Preprocessing | None]:
    """Identify a third-party program, and compare its twin."""
    answer, seconds, text = timed(function, takes)
    line = row(package, name, answer, seconds, text)
    if answer is not None and answer.known:
        far = apart(Judged(function, answer), answer, 2_000_000)
        line["result"] = "wrong" if far > EXACT else "whole"
        line["said"] = f"the twin is {far:.3g} levels off" if far > EXACT else line["said"]
    return line, answer


def real_rows(packages: tuple[str, ...]) -> Iterator[Row]:
    """The programs that packages ship."""
    for package, (name, takes, function) in shipped(packages):
        yield judged(package, name, function, takes)[0]


def processor_rows() -> Iterator[Row]:
    """The image processors that return one picture and that `from_processor` supports."""
    for name, kind_class in processors.processor_classes().items():
        kind = processors.kind_name(name)
        if kind not in KINDS:
            continue
        processor = kind_class(**processors.WITHOUT.get(kind, {}))
        result = processors.made_by(processor, kind, processors.picture((301, 417)))
        if result.ndim != 3 or result.shape[0] not in (1, 3) or kind in processors.ROWS.split():
            continue
        line, answer = judged(
            "transformers",
            f"{name}()",
            lambda image, p=processor, k=kind: processors.made_by(p, k, np.asarray(image)),
            "pil",
        )
        yield line | {"from_processor": same_answer(processor, answer)}


def same_answer(processor: Any, answer: Preprocessing | None) -> str:
    """The largest difference of the twin from `from_processor`'s pipeline on new pictures."""
    if answer is None or not answer.known:
        return ""
    pipeline, largest = Pipeline.from_processor(processor), 0.0
    gain = torch.tensor(answer.gain).abs().reshape(-1, 1, 1)
    for size in processors.SIZES[:4]:
        image = processors.tensor(processors.picture(size))
        got, wanted = answer.pipeline(image)[0], pipeline(image)[0]
        if got.shape != wanted.shape:
            return "another shape"
        largest = max(largest, float(((got - wanted).abs() / gain).max()))
    return f"{largest:.2g}"


def table(rows: list[Row]) -> str:
    """The counts of each library as a Markdown table."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    seconds: list[float] = sorted(float(line["seconds"]) for line in rows)
    for line in rows:
        counts[line["library"]][line["result"]] += 1
        counts["all"][line["result"]] += 1
    results = [
        r for r in ("whole", "not", "not claimed", "wrong") if counts["all"][r] or r == "wrong"
    ]
    lines = [
        "| library | programs | " + " | ".join(results) + " |",
        "|---" * (len(results) + 2) + "|",
    ]
    for library in (*sorted(set(counts) - {"all"}), "all"):
        numbers = [str(counts[library][result]) for result in results]
        lines.append(f"| {library} | {counts[library].total()} | " + " | ".join(numbers) + " |")
    middle, most = seconds[len(seconds) // 2], seconds[-1]
    return "\n".join(
        [*lines, "", f"CPU seconds per program: median {middle:.2f}, at most {most:.2f}."]
    )


HEAD = """# What your library's preprocessing really is

<!-- scripts/identify shipped makes this page -->

These programs come from published packages: presets, the configurations of weights, functions, and
the image processors of transformers. [`identify`](identify.md) saw none of their code, and checked
each answer on at least 200,000 values. Then the twin was compared again, on pictures that
`identify` does not draw, up to 10 times as wide as high. A twin that differs there by more than
0.002 levels counts as wrong.
"""
PROCESSORS = """## The image processors of transformers

These are the classes that return one picture and that [`Pipeline.from_processor`](processors.md)
supports, without a configuration. `Pil` classes resize with Pillow, the others with torchvision's
8-bit integers. Where `identify` found the whole program, its twin and the pipeline of
`from_processor` differ by at most {far} levels, on pictures of four sizes.
"""
FILES = """## A JPEG file first

None of these programs does so, but services do: they write and read a JPEG file before the preset.
`identify` names the file, then the rest:

| program | what it does first |
|---|---|
| torchvision: `v2.JPEG((60, 60))`, then `ResNet50_Weights.IMAGENET1K_V1.transforms()` | It writes and reads a JPEG file of quality 60, 4:2:0. |
| Pillow: `image.save(file, "JPEG", quality=85)`, then the same | It writes and reads a JPEG file of quality 85, 4:2:0. |
| OpenCV: `imencode(".jpg", image, [IMWRITE_JPEG_QUALITY, 90])`, `imdecode`, `dnn.blobFromImage` | It writes and reads a JPEG file of quality 90, 4:2:0, red and blue exchanged. |
"""  # noqa: E501
NOT_NAMED = """## Not named

`identify` claims nothing about these programs. It cannot describe two resizes in a row, sizes that
follow from a number of pixels, or a crop that leaves small pictures unchanged.
"""
SHOWN = 2
"""How many programs with the same description are listed by name; the rest are counted."""


def page(rows: list[Row], of_processors: list[Row]) -> str:
    """The text of docs/real-preprocessing.md."""
    far = max(float(line["from_processor"] or 0) for line in of_processors)
    parts = [HEAD, table(rows), "", *named(rows), ""]
    parts += [PROCESSORS.format(far=f"{far:.1g}"), table(of_processors), "", *named(of_processors)]
    parts += ["", FILES, NOT_NAMED, "| program | why |", "|---|---|"]
    for line in [*rows, *of_processors]:
        if line["result"] != "whole":
            why = line["said"].split("Not known: ")[-1].split("(tried")[0][:160].replace("|", "-")
            parts.append(f"| {line['library']}: `{line['name']}` | {why} |")
    return "\n".join(parts) + "\n"


def named(rows: list[Row]) -> list[str]:
    """A table of the identified programs; those that do the same share a row."""
    does: dict[tuple[str, str], list[str]] = defaultdict(list)
    for line in rows:
        if line["result"] == "whole":
            text = line["said"].split(" Of ")[0].replace("It takes a PIL image and returns ", "")
            does[line["library"], text].append(line["name"])
    lines = ["| program | what it does |", "|---|---|"]
    for (library, text), names in does.items():
        examples = ", ".join(f"`{name}`" for name in names[:SHOWN])
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        lines.append(f"| {library}: {examples}{more} | {text} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=("random", "traps", "real", "processors", "table", "page"))
    parser.add_argument(
        "files", nargs="*", type=Path, help="CSV files: one for table, two for page"
    )
    parser.add_argument("--seed", type=int, default=10_000)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--packages", nargs="+", default=list(SOURCES))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.kind in ("table", "page"):
        rows = [list(csv.DictReader(path.open(newline=""))) for path in options.files]
        text = (table if options.kind == "table" else page)(*rows)
        print(text) if options.out is None else options.out.write_text(text)
        return 0
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    sources = {
        "random": lambda: random_rows(options.seed, options.count),
        "traps": trap_rows,
        "real": lambda: real_rows(tuple(options.packages)),
        "processors": processor_rows,
    }[options.kind]()
    every_row: list[Row] = []
    with (options.out or Path("/dev/null")).open("w", newline="") as file:
        columns = (*COLUMNS, "from_processor") if options.kind == "processors" else COLUMNS
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        for line in sources:
            writer.writerow(line)
            file.flush()
            every_row.append(line)
            if line["result"] in ("not", "wrong"):
                print(*(line[column] for column in COLUMNS[:3]), line["said"][:300], flush=True)
    print(table(every_row))
    return int(any(line["result"] == "wrong" for line in every_row))


if __name__ == "__main__":
    sys.exit(main())
