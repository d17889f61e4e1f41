"""Lists a module's public names alone, for an editor's completion and for `dir`."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def listing(*names: Iterable[str]) -> Callable[[], list[str]]:
    """The `__dir__` of a module with these public names: without its files and its imports.

    >>> listing(["warp_flow", "splat"], ["nn"])()
    ['nn', 'splat', 'warp_flow']
    """
    everything = sorted(name for part in names for name in part)
    return everything.copy
