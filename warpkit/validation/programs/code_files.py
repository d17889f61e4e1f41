"""JPEG files that are written and read first, as lines of Python."""

from __future__ import annotations

from warpkit.validation.programs.jpeg import Jpeg

TORCH = (
    "import numpy as np",
    "import torch",
    "import torch.nn.functional as F",
    "from PIL import Image",
)
"""The imports of code for torch that takes Pillow's files."""


def lines(library: str, file: Jpeg | None) -> list[str]:
    """Lines that replace `image` by what its file shows; torch takes Pillow's."""
    if file is None:
        return []
    quality, subsampling, order = file
    if library == "warpkit":
        step = f"wk.attacks.jpeg({quality}, subsampling={subsampling!r})"
        image, end = ("image", "") if order == "RGB" else ("image.flip(0)", ".flip(0)")
        return [f"image = {step}({image}[None])[0]{end}"]
    if library == "cv2":
        factor = f"cv2.IMWRITE_JPEG_SAMPLING_FACTOR_{subsampling.replace(':', '')}"
        reverse = "[..., ::-1]" if order == "RGB" else ""
        return [
            f"options = [cv2.IMWRITE_JPEG_QUALITY, {quality}]",
            f"options += [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, {factor}]",
            f'file = cv2.imencode(".jpg", np.ascontiguousarray(image{reverse}), options)[1]',
            f"image = cv2.imdecode(file, cv2.IMREAD_COLOR){reverse}",
        ]
    reverse = ["image = Image.merge(image.mode, image.split()[::-1])"] * (order == "BGR")
    options = f'"JPEG", quality={quality}, subsampling={subsampling!r}'
    begin = [] if library == "pillow" else ["image = Image.fromarray(image.movedim(0, -1).numpy())"]
    code = ["file = io.BytesIO()", f"image.save(file, {options})", "image = Image.open(file)"]
    end = (
        [] if library == "pillow" else ["image = torch.from_numpy(np.array(image)).movedim(-1, 0)"]
    )
    return [*begin, *reverse, *code, *reverse, *end]
