"""Compare with the installed OpenCV over data/images: data/parity/opencv-<version>.csv.

One line per map, interpolation and type; differences are in 8-bit levels.

    scripts/record parity
"""

import argparse
import csv
from itertools import groupby
from pathlib import Path

from warpkit.cli.image_files import read_image
from warpkit.validation import parity_suite
from warpkit.validation.table import counted, largest

ROOT = Path(__file__).parents[3]


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    images = {path.name: read_image(path).pixels for path in (ROOT / "data/images").iterdir()}
    report = parity_suite(dict(sorted(images.items())), progress=True)

    def key(row):
        return row.setting.map, row.setting.interpolation, row.setting.dtype

    lines = []
    for (kind, interpolation, dtype), group in groupby(sorted(report.rows, key=key), key):
        rows = list(group)
        promised, differing = counted(row.guaranteed for row in rows)
        others, others_differing = counted(row.open for row in rows)
        line = {
            "map": kind,
            "interpolation": interpolation,
            "dtype": dtype,
            "settings": len(rows),
            "promised_values": promised,
            "differing": differing,
            "other_values": others,
            "others_differing": others_differing,
            "warpkit": largest((row, row.guaranteed) for row in rows),
        }
        for name in rows[0].peers:
            line[name] = largest((row, row.peers[name]) for row in rows)
        lines.append({**line, "arithmetic": report.arithmetic, **known_as(report.environment)})
    path = ROOT / "data/parity" / f"opencv-{report.environment['opencv']}.csv"
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    print(report.to_table(), f"{path.relative_to(ROOT)}", sep="\n")


def known_as(environment: dict[str, str]) -> dict[str, str]:
    """Versions under names that differ from the libraries' columns."""
    return {
        name
        if name in ("cpu", "date", "system", "opencv_vector_code")
        else f"{name}_version": value
        for name, value in environment.items()
    }


if __name__ == "__main__":
    main()
