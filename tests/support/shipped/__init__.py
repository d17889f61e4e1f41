"""Preprocessing programs as published packages ship them, without any code of ours.

`shipped` yields those of the installed packages; a program's name says how to make it again.
`presets` has programs whose settings come with a package, `functions` those of packages whose users
give a size and a filter. `models` has the images that a package passes to a network without
offering the step by itself: the method is called with a stand-in for the network.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator

from tests.support.shipped import functions, models, presets
from tests.support.shipped.made import Made

SOURCES: dict[str, Callable[[], Iterator[Made]]] = {
    **presets.SOURCES,
    **functions.SOURCES,
    **models.SOURCES,
}
MODULES = {"Pillow": "PIL", "OpenCV": "cv2"}
"""How packages are imported, where it is not by their names in `SOURCES`."""


def shipped(packages: tuple[str, ...]) -> Iterator[tuple[str, Made]]:
    """The programs of the installed packages, each with its package's name."""
    for package in packages:
        if importlib.util.find_spec(MODULES.get(package, package)) is not None:
            for program in SOURCES[package]():
                yield package, program
