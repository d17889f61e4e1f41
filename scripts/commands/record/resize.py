"""Compare the resizes of several libraries over data/images: data/parity/resize.csv.

One line per library, filter and type: the largest difference in 8-bit levels, and the share of
values that differ.

    scripts/record resize
"""

import argparse
import csv
import platform
from datetime import date
from itertools import groupby
from pathlib import Path

import cv2
import torch

from warpkit.cli.image_files import read_image
from warpkit.engine.arithmetic.guarantees import installed_arithmetic
from warpkit.validation import resizes
from warpkit.validation.suite import crop
from warpkit.validation.table import counted, levels, number

ROOT = Path(__file__).parents[3]


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    paths = sorted((ROOT / "data/images").iterdir())
    image = torch.stack([crop(read_image(path).pixels) for path in paths])
    arithmetic = installed_arithmetic()
    rows = [
        resizes.run_resize(setting, image, cv2, arithmetic)
        for setting in resizes.resize_settings(cv2)
    ]
    versions = {"opencv_version": cv2.__version__}
    versions |= {f"{name}_version": v for name, v in resizes.resize_peers().items()}
    versions |= {"python": platform.python_version(), "date": date.today().isoformat()}
    lines = []
    for key, rows_of_key in groupby(rows, lambda r: (*list(vars(r.setting).values())[:3],)):
        group = list(rows_of_key)
        total, differing = counted(row.figures for row in group)
        line = dict(zip(("library", "interpolation", "dtype"), key, strict=True))
        line |= {"values": total, "differing": differing}
        for name in group[0].peers:
            parts = [(row, row.peers[name]) for row in group]
            present = [(row, part) for row, part in parts if part is not None]
            count, apart = counted(part for _, part in present)
            line[name] = number(max(levels(*pair) for pair in present)) if present else "-"
            line[f"{name}_share"] = f"{apart / count:.4f}" if present else "-"
        lines.append({**line, **versions})
    path = ROOT / "data/parity/resize.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    print(f"{path.relative_to(ROOT)}: {sum(line['differing'] for line in lines)} values differ")


if __name__ == "__main__":
    main()
