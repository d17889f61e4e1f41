"""Preprocessing programs as published packages ship them: none of our own code in between.

`shipped` yields those of the packages that are installed; a name says how to make one again.
`presets` has the programs whose settings come with a package, `functions` those of packages that
are told a size and a filter by their user. `models` has the pictures that a package hands to a
network without offering the step by itself: the method is called with a stand-in for the network.
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
    """The programs of the packages that are there, each with its package's name."""
    for package in packages:
        if importlib.util.find_spec(MODULES.get(package, package)) is not None:
            for made in SOURCES[package]():
                yield package, made
