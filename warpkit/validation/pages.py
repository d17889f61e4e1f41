"""Parts of the pages of reports: templates, pictures of differences, PNGs as data URLs."""

from __future__ import annotations

import base64
from importlib.util import find_spec
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpkit.core.environment import import_optional

LEAST, MOST = (190.0, 20.0, 20.0), (255.0, 225.0, 90.0)
"""The colours of the smallest difference, red, and of the largest, yellow."""


def can_render() -> bool:
    """Whether the extra `cli` is installed; without it a notebook shows a report as text."""
    return all(map(find_spec, ("jinja2", "PIL", "rich")))


def render(template: str, **values: Any) -> str:
    """A template of this folder, filled in."""
    jinja = import_optional("jinja2", "to_html", "a page")
    environment = jinja.Environment(
        loader=jinja.PackageLoader("warpkit.validation", ""),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**values)


def difference(apart: NDArray[Any]) -> NDArray[np.uint8]:
    """Distances (H, W) as a picture (H, W, 3) that is black exactly where they are 0."""
    share = apart[..., None] / (apart.max() or 1.0)
    colours = np.array(LEAST) + share * (np.array(MOST) - LEAST)
    return (colours * (apart[..., None] > 0)).round().astype(np.uint8)


def png_address(picture: NDArray[np.uint8]) -> str:
    """A picture (H, W) or (H, W, 3) as a data URL."""
    pillow = import_optional("PIL.Image", "to_html", "a report with pictures")
    file = BytesIO()
    pillow.fromarray(np.ascontiguousarray(picture)).save(file, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
