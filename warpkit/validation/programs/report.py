"""`Preprocessing`: what a program does, attribute by attribute, in sentences, and as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from warpkit import attacks
from warpkit.validation.programs.jpeg import Jpeg
from warpkit.validation.programs.normalising import mean_and_std
from warpkit.validation.programs.twin import Twin

NO_LIBRARY = "no library that is known"

CodeLibrary = Literal["warpkit", "cv2", "pillow", "torch"]

UNBOUNDED = 1 << 40
"""A budget of pixels that no picture reached."""

LISTED = 5
"""The number of files that a sentence names."""


@dataclass(repr=False)
class Preprocessing:
    r"""The result of `identify`, in the order of the program's steps.

    Attributes that were not determined are None. `.pipeline` is the program as an
    `attacks.Pipeline` with gradients. On pictures that were not used to find it, `.differing` of
    `.compared` values differ from the program's by more than 0.001 levels (0.0015 for floats, more
    for float16), by `.largest` levels at most. `.reasons` say what is unknown and why; `.raised` is
    the error of a program that rejected some of the images.

    For `identify_pairs`: `.candidates` are the programs that fit, or the nearest, best first, each
    with the share of values that differ and the mean distance in levels. `.groups` is None, or
    lists of indices, one per program. `.left_out` names the files that have no match or cannot be
    read.
    """

    takes: str | None = None
    jpeg: tuple[int, str] | None = None
    before: tuple[str, Any] | None = None
    rule: str | None = None
    size: Any = None
    limit: int | None = None
    multiple: int | None = None
    enlarge: bool | None = None
    shrink: bool | None = None
    sides: str | None = None
    scale: str | None = None
    interpolation: str | None = None
    antialias: bool | None = None
    arithmetic: str | None = None
    aligned: str | None = None
    clamped: bool | None = None
    rounded: bool | str | None = None
    crop: tuple[int, int] | None = None
    pad: tuple[str, Any] | None = None
    matrix: tuple[Any, ...] | None = None
    border: str | None = None
    border_value: Any = None
    canvas: Any = None
    channels: str | None = None
    weights: tuple[float, float, float] | None = None
    gain: tuple[float, ...] | None = None
    offset: tuple[float, ...] | None = None
    layout: str | None = None
    batched: bool | None = None
    dtype: str | None = None
    differing: int | None = None
    compared: int = 0
    largest: float | None = None
    pipeline: attacks.Pipeline | None = None
    raised: str | None = None
    reasons: list[str] = field(default_factory=list)
    calls: int = 0
    candidates: list[tuple[Preprocessing, float, float]] = field(default_factory=list)
    groups: list[list[int]] | None = None
    left_out: list[str] = field(default_factory=list)
    twin: Twin | None = field(default=None, compare=False)
    resized: Twin | None = field(default=None, compare=False)
    """The resize and the values, if no rule of sizes is known; its geometry means nothing."""

    @property
    def known(self) -> bool:
        """Whether everything was identified and all values are equal."""
        return self.pipeline is not None and self.differing == 0 and not self.reasons

    @property
    def file(self) -> Jpeg | None:
        """The JPEG file that comes first, with the order of its channels."""
        if self.twin is not None or self.jpeg is None:
            return self.twin and self.twin.jpeg
        return Jpeg(*self.jpeg)

    def __str__(self) -> str:
        return " ".join(sentence for sentence in _sentences(self) if sentence)

    __repr__ = __str__

    def to_code(self, library: CodeLibrary = "warpkit") -> str:
        """The program as text: a function `preprocess(image)` that gives its numbers.

        library: "warpkit" and "torch" take a tensor (3, H, W) uint8, "cv2" an array (H, W, 3)
        uint8, "pillow" a PIL image, all RGB; the result has the program's layout and type.

        Raises ValueError if the program is not known, or the library lacks one of its steps.

        >>> from warpkit.validation import identify
        >>> result = identify(lambda image: image[..., ::-1], takes="array")
        >>> print(result.to_code("cv2").split("def ")[1])
        preprocess(image):
            \"\"\"an array (H, W, 3) uint8, RGB -> HWC, uint8.\"\"\"
            height, width = image.shape[:2]
            image = image[..., ::-1]
            return image.astype(np.uint8)
        <BLANKLINE>
        """
        from warpkit.validation.programs.code import write_code

        return write_code(self, library)

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers, words and lists, for JSON; without the pipeline."""
        left_out = ("pipeline", "twin", "resized", "candidates")
        result = {
            item.name: getattr(self, item.name)
            for item in fields(self)
            if item.name not in left_out
        }
        result["candidates"] = [
            {"program": answer.as_dict(), "differing": share, "distance": distance}
            for answer, share, distance in self.candidates
        ]
        return result

    def to_json(self, path: str | Path) -> None:
        """Write the attributes to a file."""
        Path(path).write_text(json.dumps(self.as_dict(), indent=2) + "\n", encoding="utf-8")


def _sentences(answer: Preprocessing) -> list[str]:
    """Sentences in the order of the program's steps, then the proof, then what is unknown."""
    sentences = [
        _result_sentence(answer),
        _size_sentence(answer),
        _resize_sentence(answer),
        _window_sentence(answer),
        _numbers(answer),
    ]
    if answer.compared:
        text = f"Of {answer.compared:,} values compared {answer.differing or 'none'} "
        text += "differ" if answer.differing != 0 and answer.differing != 1 else "differs"
        sentences.append(
            f"{text}{f', by up to {answer.largest:.3g} levels' if answer.differing else ''}."
        )
    if answer.left_out:
        names = ", ".join(answer.left_out[:LISTED])
        more = len(answer.left_out) - LISTED
        names += f" and {more} more" if more > 0 else ""
        sentences.append(f"Left out, {len(answer.left_out)}: {names}.")
    return [*sentences, answer.raised or "", *answer.reasons]


def _result_sentence(answer: Preprocessing) -> str:
    kinds = {"pil": "a PIL image", "array": "an array", "tensor": "a tensor"}
    kinds |= {"file": "a file's path", "bytes": "a file's bytes"}
    if answer.takes is None:
        return ""
    if answer.layout is None:
        return f"It takes {kinds[answer.takes]}."
    batch = ", with an axis for the batch" if answer.batched else ""
    return f"It takes {kinds[answer.takes]} and returns {answer.layout}{batch}, {answer.dtype}."


def _size_sentence(answer: Preprocessing) -> str:
    file = answer.file
    filed = "" if file is None else f"First it writes and reads {file}. "
    if answer.rule is None:
        return filed.strip()
    size = f"{answer.size[0]} x {answer.size[1]}" if isinstance(answer.size, tuple) else answer.size
    text = {
        "keep": "The size is kept",
        "fixed": f"Every picture becomes {size}, whatever its aspect",
        "shortest": f"The shorter side becomes {size}",
        "longest": f"The longer side becomes {size}",
        "factor": f"Both sides are multiplied by {size}",
        "height": f"The height becomes {size}",
        "area": f"The aspect is kept, with {_budget(answer.size)} pixels",
        "warp": f"{_warp_words(answer.matrix)} gives {size}",
    }[answer.rule]
    if isinstance(answer.size, tuple) and answer.rule in ("shortest", "longest"):
        side = "around" if answer.rule == "shortest" else "inside"
        text = f"The aspect is kept, {side} {size}"
    if answer.sides is not None:
        text += f", the width follows ({answer.sides})"
    if answer.limit is not None:
        text += f", {'' if answer.rule == 'height' else 'the longer one '}{answer.limit} at most"
    if answer.multiple is not None:
        text += f", sides rounded to multiples of {answer.multiple}"
    if answer.enlarge is False:
        text += "; small pictures are left as they are"
    if answer.shrink is False:
        text += "; large pictures are left as they are"
    return filed + _words_before(answer) + text + "."


def _warp_words(matrix: tuple[Any, ...] | None) -> str:
    """A warp's matrix in words."""
    if matrix is None:
        return "A fixed warp"
    if matrix[0] == "center":
        part = "the whole picture" if matrix[1] == 1 else f"{matrix[1]:g} times the whole picture"
        return f"A warp that shows {part}, centred,"
    if matrix[0] == "corners":
        return f"A perspective warp that takes {corners(matrix)}"
    rows = ", ".join(f"({', '.join(f'{v:.7g}' for v in row)})" for row in matrix)
    kind = "perspective warp" if len(matrix) == 3 else "warp"
    return f"A {kind} by the matrix ({rows}), source to result,"


def corners(matrix: tuple[Any, ...]) -> str:
    """Four points of the picture, and where a perspective takes them."""
    _, less, parts, to = matrix
    first, last = (", ".join(f"({x:g}, {y:g})" for x, y in points) for points in (parts, to))
    sides = "(width - 1, height - 1)" if less else "(width, height)"
    return f"the points {first} of {sides} to {last}"


def _budget(size: Any) -> str:
    """A range of pixels in words, where its limits are known."""
    if not isinstance(size, tuple):
        return ""
    least, most = size
    if most >= UNBOUNDED:
        return f"at least {least:,}"
    return f"{least:,} to {most:,}" if least else f"at most {most:,}"


def _words_before(answer: Preprocessing) -> str:
    if answer.before is None:
        return ""
    kind, what = answer.before
    if kind == "crop":
        part = (
            "part with the size's aspect"
            if what == "aspect"
            else "square"
            if what == "square"
            else f"square of {what:.4g} of the shorter side"
        )
        return f"First the centred {part} is cut out. "
    if kind == "box":
        part = "square" if what == "square" else "part with the size's aspect"
        return f"It resizes the centred {part}, as a box that taps may leave. "
    return f"First the picture is padded to a square with {what}. "


def _resize_sentence(answer: Preprocessing) -> str:
    if answer.interpolation is None:
        return ""
    libraries = {"pillow": "Pillow's", "torchvision": "torchvision's (8 bits)"}
    libraries |= {"torch": "torch's (floats)", "exact": "the exact"}
    library = libraries.get(answer.arithmetic or "", f"{answer.arithmetic}'s")
    text = f"The resize is {library} {answer.interpolation}"
    if answer.rule is None and answer.resized is not None:
        text = f"The resize is {answer.interpolation} on the pictures that were compared"
    elif answer.arithmetic is None:
        whose = "a library that these pairs do not tell" if answer.candidates else NO_LIBRARY
        text = f"The resize is {answer.interpolation} by {whose}"
    if answer.rule == "warp":
        text = text.replace("The resize is", "It samples by", 1)
    elif answer.antialias is not None:
        text += ", antialiased" if answer.antialias else ", without antialias"
    text += {"corners": ", corners aligned", "start": ", first pixels aligned"}.get(
        answer.aligned or "", ""
    )
    text += ", by the factor in place of the sizes" if answer.scale == "factor" else ""
    text += ", clamped to 0..255" if answer.clamped else ""
    if answer.border is not None:
        value = "" if answer.border_value is None else f" of {answer.border_value}"
        text += f", border {answer.border}{value}"
    text += {True: ", rounded to 8 bits", "down": ", cut to 8 bits", False: ", in floats"}[
        True if answer.rounded is None else answer.rounded
    ]
    return text + "."


def _window_sentence(answer: Preprocessing) -> str:
    sentences = []
    if answer.crop is not None:
        sentences.append(f"The centre is cropped to {answer.crop[0]} x {answer.crop[1]}.")
    if answer.pad is not None:
        place = {"center": "around it", "end": "after it", "start": "before it"}[answer.pad[0]]
        sentences.append(f"It is padded with {answer.pad[1]} {place}.")
    if isinstance(answer.canvas, int):
        sentences.append(f"The result's sides are multiples of {answer.canvas}.")
    return " ".join(sentences)


def _join(numbers: tuple[float, ...]) -> str:
    """One number if all are equal."""
    return f"{numbers[0]:g}" if len(set(numbers)) == 1 else f"({', '.join(map(str, numbers))})"


def _numbers(answer: Preprocessing) -> str:
    if answer.gain is None or answer.offset is None:
        return ""
    words = {"kept": "RGB", "reversed": "BGR", "gray": "gray", "gray reversed": "gray of BGR"}
    text = f"Channels are {words[answer.channels or 'kept']}"
    if answer.weights is not None:
        text += f" ({', '.join(f'{w:.4g}' for w in answer.weights)})"
    if all(math.isclose(g, 1) for g in answer.gain) and not any(answer.offset):
        return f"{text}, levels 0 to 255."
    statistics = mean_and_std(answer.gain, answer.offset, answer.dtype)
    if statistics is not None:
        mean, std = (_join(numbers) for numbers in statistics)
        text += f", mean {mean}, std {std}"
    if len(set(answer.gain)) == len(set(answer.offset)) == 1:
        return f"{text}: {answer.gain[0]:.6g} * level + {answer.offset[0]:.6g}."
    gain, offset = (
        ", ".join(f"{v:.6g}" for v in values) for values in (answer.gain, answer.offset)
    )
    return f"{text}: ({gain}) * level + ({offset})."
