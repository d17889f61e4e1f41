"""Limits the size of a command's result."""

from __future__ import annotations

from warpkit.cli.errors import CommandError

MOST_PIXELS = 178_956_970
"""2 * PIL.Image.MAX_IMAGE_PIXELS: Pillow refuses to read larger images."""


def check_size(option: str, height: float, width: float) -> None:
    """Reject a result that is too large to be read again, before minutes of work and many GB."""
    if height * width > MOST_PIXELS:
        raise CommandError(
            f"{option} makes images of up to {MOST_PIXELS:,} pixels, the most that Pillow reads, "
            f"got {height:.12g} x {width:.12g}"
        )
