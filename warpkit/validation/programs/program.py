"""Calls a program, and converts what it returns to numbers (C, h, w)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from warpkit.core import checks
from warpkit.core.environment import import_optional
from warpkit.validation.programs import pictures
from warpkit.validation.programs.jpeg import Jpeg, through_file
from warpkit.validation.programs.pictures import Picture

TAKES = ("pil", "array", "tensor", "file")
"""A PIL image (RGB), an array (H, W, 3) uint8, a tensor (3, H, W) uint8, a PNG file's path."""

BYTES = "bytes"
"""The bytes of a PNG file: tried after its path."""

MAX_CALLS = 240
"""The largest number of calls for one kind of picture; most programs need 60 to 110.

The same number is allowed again if a JPEG file comes first. Results of fewer than 33,000 values
need more calls, as the proof compares 200,000."""

FIRST_SHAPES = ((480, 640), (1290, 1410), (224, 224), (64, 64))
"""Shapes for the first call; the later ones are tried if the program raises an error."""

REPEATS = 5
"""How often a picture is repeated to find out whether the program is random."""

PICTURE_KEYS = ("pixel_values", "image", "images")
"""The keys under which a dict may contain the picture; otherwise its first value with a shape."""


ERROR = 200
"""The longest quoted error, in characters; OpenCV's errors name every overload."""


class NotKnownError(Exception):
    """No known program behaves like this one; the text is a sentence for the user."""


class RefusedError(Exception):
    """The program raises an error on a picture; the cause is that error."""


class Program:
    """A black box, with the layout of its results and a count of its calls."""

    def __init__(
        self, function: Callable[[Any], Any], takes: str, advance: Callable[[str], None]
    ) -> None:
        self.function, self.takes, self.advance = function, takes, advance
        self.calls, self.allowed = 0, MAX_CALLS
        self.seconds = 0.0
        self.refusals: list[RefusedError] = []
        self.layout = "CHW"
        self.batched = False
        self.axes, self.dtype = 0, ""
        self.returns_pil = False
        self.changes_argument = False
        self.shape = FIRST_SHAPES[0]
        self.jpeg: Jpeg | None = None
        """The file that it writes and reads before everything else, if that is known."""

    def after_file(self, picture: Picture) -> Picture:
        """A picture as the steps after the file see it."""
        if self.jpeg is None:
            return picture
        image = torch.from_numpy(picture).movedim(-1, 0)[None]
        return through_file(image, self.jpeg)[0].movedim(0, -1).contiguous().numpy()

    def raw(self, picture: Picture) -> NDArray[Any]:
        """The program's result for a picture, as an array of its own shape and type."""
        if self.calls >= self.allowed:
            raise NotKnownError(f"{self.allowed} calls of the program were not enough to tell.")
        self.calls += 1
        self.advance(f"{picture.shape[0]} x {picture.shape[1]}")
        with _argument_of(picture, self.takes) as argument:
            return self._read(self._returned(picture, argument))

    def _returned(self, picture: Picture, argument: Any) -> Any:
        """What the program returns. Raises RefusedError."""
        begun = time.perf_counter()
        try:
            returned = self.function(argument)
        except Exception as error:
            shape = f"{picture.shape[0]} x {picture.shape[1]}"
            words = f"raises {type(error).__name__} on a picture of {shape} taken as {self.takes!r}"
            refusal = RefusedError(f"{words}: {' '.join(str(error).split())[:ERROR]}")
            self.refusals.append(refusal)
            raise refusal from error
        finally:
            self.seconds += time.perf_counter() - begun
        if not self.changes_argument and self.takes not in ("file", BYTES):
            self.changes_argument = not np.array_equal(_as_picture(argument, self.takes), picture)
        return returned

    def __call__(self, picture: Picture) -> NDArray[np.float64]:
        """The program's numbers for a picture, (C, h, w): a new array."""
        return self.numbers(picture).astype(np.float64)

    def numbers(self, picture: Picture) -> NDArray[Any]:
        """The same in the type that it returns."""
        array = self.raw(picture)
        if self.batched:
            array = array[0]
        if array.ndim == 2:
            array = array[None]
        elif self.layout == "HWC":
            array = np.moveaxis(array, -1, 0)
        return array

    def _read(self, returned: Any) -> NDArray[Any]:
        """The single picture in a returned value."""
        if isinstance(returned, Mapping) or hasattr(returned, "keys"):
            returned = _picture_of(returned)
        if isinstance(returned, (list, tuple)):
            if len(returned) != 1:
                raise NotKnownError(f"It returns a {type(returned).__name__} of {len(returned)}.")
            returned = returned[0]
            if isinstance(returned, (np.ndarray, torch.Tensor)):
                returned = returned[None]
        if isinstance(returned, torch.Tensor):
            dtype = str(returned.dtype).removeprefix("torch.")
            tensor = returned.detach().cpu()
            tensor = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
            array = tensor.numpy()
        else:
            self.returns_pil = type(returned).__module__.startswith("PIL.")
            array = np.asarray(returned)
            dtype = str(array.dtype)
        while array.ndim > 4 and array.shape[0] == 1:  # a batch of lists that have one item each
            array = array[0]
        if array.dtype.kind not in "uif" or array.ndim not in (2, 3, 4):
            got = f"shape {array.shape}, {array.dtype}" if array.ndim else type(returned).__name__
            raise NotKnownError(f"What it returns is no picture ({got}).")
        one, other = f"{self.axes} axes of {self.dtype}", f"{array.ndim} axes of {dtype}"
        if self.axes and one != other:
            text = "What it returns depends on the picture"
            raise NotKnownError(f"{text}: {one}, then {other}.")
        self.axes, self.dtype = array.ndim, dtype
        return array

    def said_refusals(self) -> str | None:
        """A sentence about the pictures that the program rejected; None if it accepted all."""
        if not self.refusals:
            return None
        others = len(self.refusals) - 1
        more = f" (and on {others} more)" if others else ""
        return f"It {self.refusals[0]}{more}."

    def check_repeats(self) -> None:
        """Call it on the same noise several times: is it random, and what does it return?"""
        first = self._first()
        picture = pictures.noise(*self.shape, 1)
        for _ in range(REPEATS):
            again = self.raw(picture)
            if again.shape != first.shape:
                text = "The same picture gives another shape when it is given again"
                raise NotKnownError(f"{text} ({again.shape}, not {first.shape}).")
            if not np.array_equal(again, first, equal_nan=True):
                text = "The same picture gives other values when it is given again"
                raise NotKnownError(f"{text}: the program is random.")
        self.batched = first.ndim == 4
        if self.batched and len(first) != 1:
            raise NotKnownError(f"It returns {len(first)} pictures of one.")
        shape = first.shape[1:] if self.batched else first.shape
        self.layout = layout_of(shape)

    def _first(self) -> NDArray[Any]:
        """Its result for noise of the first shape that it accepts."""
        refused: RefusedError | None = None
        for shape in FIRST_SHAPES:
            self.shape = shape
            try:
                return self.raw(pictures.noise(*shape, 1))
            except RefusedError as error:
                refused = refused or error
        assert refused is not None
        raise refused


def layout_of(shape: tuple[int, ...]) -> str:
    """The layout of a picture with this shape: CHW, HWC or HW."""
    if len(shape) == 2:
        return "HW"
    first, last = shape[0] in (1, 3), shape[-1] in (1, 3)
    if not first and not last:
        raise NotKnownError(f"It returns no axis of 1 or 3 channels (shape {tuple(shape)}).")
    if first and last:  # a side of 1 or 3 pixels
        return "CHW" if shape[1] > 4 else "HWC"
    return "CHW" if first else "HWC"


def _picture_of(returned: Any) -> Any:
    """The picture in a dict."""
    keys = list(returned.keys())
    candidates = [key for key in PICTURE_KEYS if key in keys]
    shaped = [key for key in keys if hasattr(returned[key], "shape")]
    if not candidates and not shaped:
        raise NotKnownError("It returns a dict without a picture.")
    return returned[(candidates or shaped)[0]]


@contextmanager
def _argument_of(picture: Picture, takes: str) -> Iterator[Any]:
    """A new copy of a picture, of the kind that the program takes; a file exists until the end."""
    if takes == "array":
        yield picture.copy()
    elif takes == "tensor":
        yield torch.from_numpy(picture.copy()).movedim(-1, 0).contiguous()
    else:
        from PIL import Image

        image = Image.fromarray(picture)
        if takes == "pil":
            yield image
        elif takes == BYTES:
            file = BytesIO()
            image.save(file, "PNG", compress_level=1)
            yield file.getvalue()
        else:
            with TemporaryDirectory(prefix="warpkit-") as folder:
                path = str(Path(folder) / "picture.png")
                image.save(path, compress_level=1)
                yield path


def _as_picture(argument: Any, takes: str) -> NDArray[Any]:
    """Converts a picture of this kind back to an array (H, W, 3)."""
    return argument.movedim(0, -1).numpy() if takes == "tensor" else np.asarray(argument)


def check_takes(name: str, takes: object) -> tuple[str, ...]:
    """The kinds of pictures to try."""
    kind = checks.check_name(name, "takes", takes, ("auto", *TAKES))
    if kind == "auto":
        return (*TAKES, BYTES) if find_spec("PIL") else ("array", "tensor")
    if kind in ("pil", "file"):
        import_optional("PIL.Image", name, f"takes={kind!r}")
    return (kind, BYTES) if kind == "file" else (kind,)
