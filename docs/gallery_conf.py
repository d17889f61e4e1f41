"""How mkdocs-gallery runs examples/gallery: in the order of the subjects, moving pictures too."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

ORDER = (
    "interpolations",
    "antialias",
    "gradients",
    "beside_opencv",
    "resize",
    "align",
    "patches",
    "flow_fields",
    "frame_interpolation",
    "lens",
    "sphere",
    "depth",
    "augmentation",
    "attack",
    "jpeg",
    "spatial_transformer",
)


class BySubject:
    """Sorts the examples as ORDER lists them."""

    def __call__(self, path: Path) -> int:
        return ORDER.index(path.stem.removeprefix("plot_"))


def moving_pictures(block: Any, script: Any) -> str:
    """Shows the WebP files that a block of code writes; mkdocs-gallery knows only figures."""
    pictures = sorted(Path(script.gallery.scripts_dir).glob("*.webp"))
    for picture in pictures:
        shutil.move(picture, script.gallery.images_dir / picture.name)
    return "\n".join(f"![{p.stem}, moving](./images/{p.name})" for p in pictures)


conf = {
    "within_subsection_order": BySubject,
    "image_scrapers": ("matplotlib", moving_pictures),
}
