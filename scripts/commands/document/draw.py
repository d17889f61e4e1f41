"""Draw the figures of the guides: scripts/document draw [NAME ...] [--folder FOLDER]

Draws the figures of conventions, lookups and turns and the first figure of some examples of
examples/gallery. The name "benchmarks" selects the plots of data/benchmarks. Needs extra `docs`.
"""

from __future__ import annotations

import argparse
import os
import runpy
import tempfile
from pathlib import Path

import matplotlib as mpl
from PIL import Image

mpl.use("Agg")
import matplotlib.pyplot as plt

from benchmarks import plots
from scripts.commands.documentation import conventions, lookups, turns

ROOT = Path(__file__).resolve().parents[3]
PICTURES = {
    "conventions": "docs/images/conventions.png",
    "lookups": "docs/images/lookups.png",
    "align": "docs/images/align.png",
    "augmentation": "docs/images/augmentation.png",
    "flow_fields": "docs/images/flow-fields.png",
    "jpeg": "docs/images/jpeg.png",
    "patches": "data/patches.png",
    "sphere": "docs/images/sphere.png",
    "turns": "docs/images/turns.png",
}
"""Each figure's file."""
DRAWN = {"conventions": conventions.draw, "lookups": lookups.draw, "turns": turns.draw}
"""The figures that do not come from an example."""


def draw(name: str, path: Path) -> None:
    """Draw one figure; those of examples get 200 colours, which take a third of the space."""
    if name in DRAWN:
        DRAWN[name](path)
        return
    script = ROOT / "examples" / "gallery" / f"plot_{name}.py"
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # some also write animations
        try:
            runpy.run_path(str(script))
        finally:
            os.chdir(home)
    plt.figure(plt.get_fignums()[0]).savefig(path, dpi=80)
    plt.close("all")
    with Image.open(path) as file:
        few = file.convert("RGB").quantize(200, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def main() -> None:
    """Draw all figures, or the named ones, to their places or into a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PICTURES))
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    if unknown := set(options.names) - {*PICTURES, "benchmarks"}:
        parser.error(f"unknown figures: {', '.join(sorted(unknown))}")
    if options.folder:
        options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.names or PICTURES:
        if name == "benchmarks":
            plots.write(options.folder or Path("."))
            continue
        path = ROOT / PICTURES[name]
        path = (options.folder / path.name if options.folder else path).resolve()
        draw(name, path)
        print(f"wrote {path}, {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
