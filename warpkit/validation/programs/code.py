"""An identified program as text: a function `preprocess(image)` on this package or another one."""

from __future__ import annotations

from typing import Any, NoReturn

from warpkit.choices import SPLINE_FILTERS
from warpkit.core import checks
from warpkit.engine.arithmetic.resize import ZOOMS
from warpkit.validation.programs import code_files, code_sizes, code_warps
from warpkit.validation.programs.arithmetic import FLOATS, Resampling, zoom_options
from warpkit.validation.programs.geometry import Geometry
from warpkit.validation.programs.twin import Twin
from warpkit.validation.programs.warp_twin import WarpTwin

LIBRARIES = ("warpkit", "cv2", "pillow", "torch")

TAKES = {
    "warpkit": "a tensor (3, H, W) uint8",
    "cv2": "an array (H, W, 3) uint8, RGB",
    "pillow": "a PIL image, RGB",
    "torch": "a tensor (3, H, W) uint8",
}
IMPORTS = {
    "warpkit": ("import torch", "", "import warpkit as wk"),
    "cv2": ("import cv2", "import numpy as np"),
    "pillow": ("import numpy as np", "from PIL import Image"),
    "torch": ("import torch", "import torch.nn.functional as F"),
}
CV2 = {
    "nearest": "NEAREST",
    "nearest_exact": "NEAREST_EXACT",
    "bilinear": "LINEAR",
    "bilinear_exact": "LINEAR_EXACT",
    "bicubic": "CUBIC",
    "area": "AREA",
    "lanczos4": "LANCZOS4",
}


def write_code(answer: Any, library: object) -> str:
    """The code of `Preprocessing.to_code`."""
    name = checks.check_name("to_code", "library", library, LIBRARIES)
    twin: Twin | None = answer.twin
    if twin is None or not answer.known:
        checks.fail("to_code", "library", "used on a program that is known", "one that is not")
    if twin.values.is_gray:
        _cannot(name, "program for a conversion to gray")
    lines = _Writer(name, twin).lines(answer)
    file = code_files.lines(name, twin.jpeg)
    imports = code_files.TORCH if file and name == "torch" else IMPORTS[name]
    whole = ["import io"] if "io." in "".join(file) else []
    head = [*whole, "import math", "", *imports, "", "", "def preprocess(image):"]
    text = (
        f'    """{TAKES[name]} -> {answer.layout}{", a batch of one" if answer.batched else ""}, '
    )
    return "\n".join(
        [*head, f'{text}{answer.dtype}."""', *(f"    {line}" for line in file + lines), ""]
    )


def _cannot(library: str, what: str) -> NoReturn:
    raise ValueError(f"to_code: library={library!r} has no {what} with these numbers")


class _Writer:
    """Writes the steps of a twin for one library."""

    def __init__(self, library: str, twin: Twin) -> None:
        self.library, self.twin = library, twin
        self.tensors = library in ("warpkit", "torch")

    def lines(self, answer: Any) -> list[str]:
        """The body of the function."""
        geometry, how = self.twin.geometry, self.twin.resampling
        if isinstance(self.twin, WarpTwin):
            code = code_warps.lines(self.library, self.twin.warp, self._levels())
            return code + self._numbers(answer)
        lines = [
            "height, width = image.shape[-2:]"
            if self.tensors
            else "width, height = image.size"
            if self.library == "pillow"
            else "height, width = image.shape[:2]"
        ]
        box, before = self._before(geometry)
        lines += before
        if how is not None:
            lines += code_sizes.lines(geometry)
            lines += self._resize(how, box)
        elif self.library == "pillow":
            lines.append("image = np.array(image)")
        lines += self._window(geometry)
        return lines + self._numbers(answer)

    def _before(self, geometry: Geometry) -> tuple[str, list[str]]:
        """A box for the resize, and the lines of a crop or a padding before it."""
        if geometry.before is None:
            return "", []
        lines = code_sizes.before_lines(geometry)
        kind = geometry.before[0]
        if kind == "box":
            if self.library not in ("warpkit", "pillow"):
                _cannot(self.library, "resize of a box")
            return "box", lines
        if kind == "crop":
            cut = {
                "cv2": "image = image[y : y + rows, x : x + columns]",
                "pillow": "image = image.crop((x, y, x + columns, y + rows))",
            }.get(self.library, "image = image[..., y : y + rows, x : x + columns]")
            return "", [*lines, cut, "height, width = rows, columns"]
        lines.append("height, width, inside = rows, columns, (height, width)")
        if self.library == "pillow":
            level = ", ".join(str(int(v)) for v in self._levels())
            lines.append(f'square = Image.new("RGB", (width, height), ({level}))')
            lines.append("square.paste(image, (x, y))")
        else:
            lines += self._canvas("square", "height", "width", "image", "*inside", ("y", "x"))
        return "", [*lines, "image = square"]

    def _levels(self) -> list[float]:
        """The padding of red, green and blue."""
        levels = list(self.twin.padding) * (3 // len(self.twin.padding))
        return levels[::-1] if self.twin.values.channels == "reversed" else levels

    def _canvas(
        self, name: str, rows: str, columns: str, image: str, size: str, corner: tuple[str, str]
    ) -> list[str]:
        """Lines that put an image on a canvas of one colour."""
        h, w = ("inside[0]", "inside[1]") if size.startswith("*") else size.split(", ")
        levels = tuple(int(v) if v == int(v) else v for v in self._levels())
        y, x = corner
        place = f"{y} : {y} + {h}, {x} : {x} + {w}"
        if self.tensors:
            values = f"torch.tensor({levels}, dtype={image}.dtype)[:, None, None]"
            return [
                f"{name} = {values}.repeat(1, {rows}, {columns})",
                f"{name}[:, {place}] = {image}",
            ]
        return [
            f"{name} = np.empty(({rows}, {columns}, 3), {image}.dtype)",
            f"{name}[:] = {levels}",
            f"{name}[{place}] = {image}",
        ]

    def _resize(self, how: Resampling, box: str) -> list[str]:
        if how.scale == "factor" and self.library != "cv2":
            _cannot(self.library, "resize by a factor in place of the sizes")
        family = "cv2" if how.arithmetic.startswith("opencv") else how.arithmetic
        floats = how.rounded is not True or how.arithmetic in FLOATS
        if self.library == "warpkit":
            lines = self._by_warpkit(how, box, floats=floats and not how.moves)
        elif self.library == "cv2" and family == "cv2" and not how.single:
            lines = self._by_cv2(how, floats=floats and not how.moves)
        elif self.library == "pillow" and family == "pillow":
            lines = self._by_pillow(how, box, floats=floats and not how.moves)
        elif self.library == "torch" and family in ("torch", "torchvision"):
            lines = self._by_torch(how, floats=floats and not how.moves)
        else:
            _cannot(self.library, f"{how.interpolation} of {how.arithmetic}")
        return lines + self._rounded(how)

    def _by_warpkit(self, how: Resampling, box: str, *, floats: bool) -> list[str]:
        if how.arithmetic in ZOOMS:
            options = [f"{name}={value!r}" for name, value in zoom_options(how).items()]
            image = "image.float()" if floats else "image"
            return [f"image = wk.resize({image}, (h, w), {', '.join(options)})"]
        if how.arithmetic == "tensorflow" or how.aligned != "centers":
            _cannot("warpkit", f"{how.interpolation} of {how.arithmetic}")
        library = "torchvision" if how.arithmetic == "torch" else how.arithmetic
        options = [f"interpolation={how.interpolation!r}", f"arithmetic={library!r}"]
        plain = how.moves or how.interpolation in ("area", *SPLINE_FILTERS)
        if library in ("exact", "torchvision") and not plain:
            options.append(f"antialias={how.antialias}")
        if box:
            options.append("box=(x, y, x + columns, y + rows)")
        image = "image.float()" if floats else "image"
        return [f"image = wk.resize({image}, (h, w), {', '.join(options)})"]

    def _by_cv2(self, how: Resampling, *, floats: bool) -> list[str]:
        image = "image.astype(np.float32)" if floats else "np.ascontiguousarray(image)"
        flag = f"interpolation=cv2.INTER_{CV2[how.interpolation]}"
        if how.scale == "factor":
            factor = self.twin.geometry.size
            if not isinstance(factor, float):
                _cannot("cv2", "resize by a factor that follows the picture")
            return [f"image = cv2.resize({image}, None, fx={factor}, fy={factor}, {flag})"]
        return [f"image = cv2.resize({image}, (w, h), {flag})"]

    def _by_pillow(self, how: Resampling, box: str, *, floats: bool) -> list[str]:
        part = ", box=(x, y, x + columns, y + rows)" if box else ""
        call = f"resize((w, h), Image.Resampling.{how.interpolation.upper()}{part})"
        if not floats:
            return [f"image = np.array(image.{call})"]
        return [
            f'planes = [plane.convert("F").{call} for plane in image.split()]',
            "image = np.stack([np.asarray(plane) for plane in planes], -1)",
        ]

    def _by_torch(self, how: Resampling, *, floats: bool) -> list[str]:
        mode = how.interpolation.replace("_", "-")
        options = [f"mode={mode!r}"]
        if how.interpolation in ("bilinear", "bicubic", "lanczos"):
            options.append(f"antialias={how.antialias}")
        if how.aligned == "corners":
            options.append("align_corners=True")
        image = "image[None].float()" if floats else "image[None].contiguous()"
        return [f"image = F.interpolate({image}, (h, w), {', '.join(options)})[0]"]

    def _rounded(self, how: Resampling) -> list[str]:
        if how.moves or (how.rounded is True and how.arithmetic not in FLOATS):
            return []
        clip = "image.clamp(0, 255)" if self.tensors else "image.clip(0, 255)"
        if how.rounded is True:
            return [f"image = {clip}.round()"]
        if how.rounded == "down":
            floor = f"{clip}.floor()" if self.tensors else f"np.floor({clip})"
            return [f"image = {floor}"]
        return [f"image = {clip}"] if how.clamped else []

    def _window(self, geometry: Geometry) -> list[str]:
        """Lines of the crop and the padding after the resize."""
        if geometry.window is None and geometry.stride is None:
            return []
        if geometry.rule == "fixed" and geometry.window == geometry.size:
            return []
        lines = code_sizes.window_lines(geometry, resized=self.twin.resampling is not None)
        cut = "y : y + rows, x : x + columns"
        lines.append(f"image = image[{'..., ' if self.tensors else ''}{cut}]")
        if any(level != int(level) for level in self.twin.padding):
            lines.append("image = image.float()" if self.tensors else "image = image * 1.0")
        shape = "image.shape[-2:]" if self.tensors else "image.shape[:2]"
        lines.append(f"h, w = {shape}")
        lines += code_sizes.place_lines(geometry)
        lines += self._canvas("canvas", "rows", "columns", "image", "h, w", ("top", "left"))
        return [*lines, "image = canvas"]

    def _numbers(self, answer: Any) -> list[str]:
        """Lines of the order of channels, the numbers, the layout and the type."""
        lines = []
        values = self.twin.values
        if values.channels == "reversed":
            lines.append("image = image.flip(0)" if self.tensors else "image = image[..., ::-1]")
        plain = set(values.gain) == {1.0} and set(values.offset) == {0.0}
        gain, offset = (
            v[0] if len(set(v)) == 1 else tuple(v) for v in (values.gain, values.offset)
        )
        if self.tensors:
            gain, offset = (
                f"torch.tensor({v}, dtype=torch.float64)[:, None, None]"
                if isinstance(v, tuple)
                else v
                for v in (gain, offset)
            )
            lines += [] if plain else [f"image = image.double() * {gain} + {offset}"]
            lines += ["image = image.movedim(0, -1)"] if answer.layout == "HWC" else []
            lines += ["image = image[0]"] if answer.layout == "HW" else []
            ending = f".to(torch.{answer.dtype})"
        else:
            gain, offset = (f"np.array({v})" if isinstance(v, tuple) else v for v in (gain, offset))
            lines += [] if plain else [f"image = image * {gain} + {offset}"]
            lines += ["image = image.transpose(2, 0, 1)"] if answer.layout == "CHW" else []
            if answer.dtype == "bfloat16":
                _cannot(self.library, "bfloat16")
            ending = f".astype(np.{answer.dtype})"
        lines += ["image = image[None]"] if answer.batched else []
        return [*lines, f"return image{ending}"]
